"""H1, H2, H10: sizes, names, nothing foreign in the tree."""

import ast
import re
import statistics

from tree import ROOT, sources, tracked

VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "core", "base_utils"}


def test_files_and_functions_are_small() -> None:
    """H1: source files of at most 400 lines, functions of at most 60; the median file is far smaller."""
    long = [f"{s.path}: {len(s.lines)} lines" for s in sources() if len(s.lines) > 400]
    long += [
        f"{s.path}:{node.lineno} {node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for s in sources()
        for node in ast.walk(s.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    sizes = sorted(len(s.lines) for s in sources() if len(s.lines) > 1)
    assert not long, "H1 split these, each has more than one reason:\n" + "\n".join(long)
    assert statistics.median(sizes) <= 160


def test_test_files_are_not_endless() -> None:
    """H1: a test file of more than 700 lines tests more than one thing."""
    assert not [s.path for s in sources("tests") if len(s.lines) > 700]


def test_names_say_what_a_file_is_for() -> None:
    """H2."""
    assert not [s.path for s in sources() if set(re.split(r"[/_.]", s.path)) & VAGUE]


def test_nothing_foreign_or_local_in_the_tree() -> None:
    """H10: no machine paths, no registry hosts, no big blobs."""
    words = re.compile(r"/(work|farm|root)/[a-z.]|files\.pythonhosted|registry\.npmjs|deb\.debian\.org")
    found = []
    for name in tracked():
        path = ROOT / name
        if not path.is_file():
            continue
        if path.stat().st_size > 1_000_000:
            found.append(f"{name}: {path.stat().st_size} bytes")
        elif path.suffix in {".py", ".md", ".toml", ".yml", ".txt", ""} and path.name != "test_shape.py":
            found += [f"{name}: {hit.group()}" for hit in words.finditer(path.read_text(errors="ignore"))]
    assert not found


def test_no_unfinished_marks() -> None:
    """H31."""
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pragma: no cover)\b")
    assert not [f"{s.path}:{i}" for s in sources() for i, line in enumerate(s.lines, 1) if marks.search(line)]
