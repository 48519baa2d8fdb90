"""H3, H7, H12, H21, H22, H27, H28, H39, H40: what code here does not do."""

import ast

from tree import calls, escaped, sources

BANNED = {
    "asyncio.run": "clients bind to their first loop (D22)",
    "BackgroundTasks": "lost on a kill: file a job row",
    "pickle.loads": "never of anything that came from outside",
}
BANNED_KEYWORDS = {"countdown": "D24: use run_at", "eta": "D24: use run_at"}
BANNED_ATTRIBUTES = {"filter_by": "D33: ambiguous", "routes": "D27: FastAPI's route tree"}


def test_transactions_end_in_one_place() -> None:
    """H3: `commit` and `rollback` appear in service/store/session.py only."""
    found = [
        f"{s.path}:{node.lineno} use store.writing()"
        for s in sources("service", "factory", "taskmill")
        if s.path != "service/store/session.py"
        for node, name in calls(s)
        if name.rpartition(".")[2] in {"commit", "rollback"}
    ]
    assert not found


def test_banned_calls() -> None:
    """H28, each with its reason."""
    found = []
    for source in sources():
        for node, name in calls(source):
            if name in BANNED and not escaped(source, node.lineno, "H28"):
                found.append(f"{source.path}:{node.lineno} {name}: {BANNED[name]}")
            found += [
                f"{source.path}:{node.lineno} {keyword.arg}: {BANNED_KEYWORDS[keyword.arg]}"
                for keyword in node.keywords
                if keyword.arg in BANNED_KEYWORDS
            ]
        found += [
            f"{source.path}:{node.lineno} .{node.attr}: {BANNED_ATTRIBUTES[node.attr]}"
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Attribute) and node.attr in BANNED_ATTRIBUTES
            if not escaped(source, node.lineno, "H28")
        ]
    assert not found, "\n".join(found)


def test_hashes_are_taken_of_canonical_json() -> None:
    """H16: whoever hashes JSON uses verifiers/canonical.py."""
    found = [
        f"{s.path}:{node.lineno}"
        for s in sources("service", "factory", "verifiers")
        if s.path != "verifiers/canonical.py"
        for node, name in calls(s)
        if name.startswith("hashlib.") and any("json.dumps" in ast.unparse(a) for a in node.args)
    ]
    assert not found


def test_a_failure_of_ours_never_becomes_a_number() -> None:
    """H21: no number is returned from an except block where rewards are made."""
    found = []
    for source in sources("verifiers", "service/actions"):
        for handler in (n for n in ast.walk(source.tree) if isinstance(n, ast.ExceptHandler)):
            for node in ast.walk(handler):
                value = node.value if isinstance(node, ast.Return) else None
                if isinstance(value, ast.UnaryOp):
                    value = value.operand
                if isinstance(value, ast.Constant) and type(value.value) in {int, float}:
                    found.append(f"{source.path}:{node.lineno}")
    assert not found


def test_public_functions_return_named_things() -> None:
    """H12: more than one value comes back as a NamedTuple or a dataclass."""
    found = [
        f"{s.path}:{node.lineno} {node.name} -> {ast.unparse(node.returns)}"
        for s in sources()
        for node in ast.walk(s.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not node.name.startswith("_") and node.returns is not None
        if isinstance(node.returns, ast.Subscript) and ast.unparse(node.returns.value) == "tuple"
        if isinstance(node.returns.slice, ast.Tuple) and not ast.unparse(node.returns).endswith("...]")
        if not escaped(s, node.lineno, "H12")
        if node.name != "settings_customise_sources"
    ]
    assert not found, "\n".join(found)


def test_waits_have_limits() -> None:
    """H27: subprocess, queue, thread and lock waits name a timeout."""
    needs = {"subprocess.run", "subprocess.check_output", "subprocess.check_call"}
    found = [
        f"{s.path}:{node.lineno} {name}"
        for s in sources()
        for node, name in calls(s)
        if name in needs and not any(k.arg == "timeout" for k in node.keywords)
        if not escaped(s, node.lineno, "H27")
    ]
    assert not found


def test_our_code_is_not_mocked() -> None:
    """H39."""
    assert not [s.path for s in sources("tests") if "unittest.mock" in "\n".join(s.lines) and "test_code" not in s.path]


def test_tests_wait_for_conditions() -> None:
    """H40: no sleep of more than 50 ms in a test."""
    found = [
        f"{s.path}:{node.lineno}"
        for s in sources("tests")
        for node, name in calls(s)
        if name in {"time.sleep", "sleep"} and node.args
        if isinstance(node.args[0], ast.Constant) and float(node.args[0].value) > 0.05
        if not escaped(s, node.lineno, "H40")
    ]
    assert not found
