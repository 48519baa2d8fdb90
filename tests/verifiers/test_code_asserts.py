import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sandbox.contract import Backend, BadRequest
from tests.verifiers.code_cases import context, judged, lines, missing
from tests.verifiers.doctested import doctested
from verifiers import asserts_candidate, asserts_trusted, code_asserts
from verifiers.asserts_relay import driver
from verifiers.composer import reward
from verifiers.contract import Finding, Outcome
from verifiers.registry import check_task

CODE, CASES = "code_grading_cases.jsonl", "verifier_cases.jsonl"


def verify(
    sandbox: Backend, code: str, *asserts: str, setup: str = "", entries: Any = ("f",), **limits: Any
) -> Finding:
    reference, params = {"asserts": list(asserts), "setup": setup}, {"entries": list(entries)}
    return judged(code_asserts, code, reference, params, context(sandbox, **{"wall_s": 4, **limits}))


# ── honest ──

HONEST = {
    "plain": ("def f(a, b=1):\n    return a + b", ["assert f(1) == 2", "assert f('a', b='b') == 'ab'"]),
    "tuple stays tuple": ("def f(x):\n    return x, [x]", ["assert f(1) == (1, [1])", "assert f(1) != [1, [1]]"]),
    "sets": ("def f():\n    return {1, 2}, frozenset([3])", ["assert f() == ({2, 1}, {3})", "assert type(f()[0]) is set"]),
    "numbers": (
        "from fractions import Fraction\nfrom decimal import Decimal\n"
        "def f():\n    return [10 ** 6000, -(2 ** 70), 1e300, float('inf'), 1 + 2j, True, Fraction(1, 3), Decimal('0.10')]",
        [
            "from fractions import Fraction\nfrom decimal import Decimal",
            "assert f() == [10 ** 6000, -(2 ** 70), 1e300, float('inf'), 1 + 2j, True, Fraction(1, 3), Decimal('0.10')]",
            "assert f()[5] is True",
        ],
    ),
    "nan": ("def f():\n    return float('nan')", ["assert f() != f()"]),
    "bytes and text": (
        "def f():\n    return b'\\0\\xff', bytearray(b'a'), '\\0\\ud800\\n'",
        ["assert f() == (b'\\0\\xff', b'a', '\\0\\ud800\\n')"],
    ),
    "dicts": (
        "from collections import *\nP = namedtuple('P', 'x y')\n"
        "def f():\n    return {1: 'a', (2, 3): {}}, Counter('aab'), OrderedDict(b=1), defaultdict(list, a=[1]), P(1, 2)",
        [
            "d, c, o, e, p = f()",
            "assert d == {(2, 3): {}, 1: 'a'} and c.most_common(1) == [('a', 2)] and list(o) == ['b']",
            "assert e['z'] == [] and p == (1, 2) and p.y == 2 and repr(p) == 'P(x=1, y=2)'",
        ],
    ),
    "views": ("def f(d):\n    return d.keys(), d.values(), range(3)", ["assert list(f({1: 2})[1]) == [2]"]),
    "deque": ("from collections import deque\ndef f():\n    return deque([1, 2], 2)", ["assert f().maxlen == 2"]),
    "dates": (
        "import datetime\ndef f():\n    return datetime.date(2020, 2, 29) + datetime.timedelta(1)",
        ["import datetime", "assert f() == datetime.date(2020, 3, 1)"],
    ),
    "subclasses are read as their base": (
        "import enum\nclass L(list):\n    def __iter__(self): return iter(())\nclass E(enum.IntEnum):\n    A = 3\n"
        "def f():\n    return L([1]), E.A",
        ["assert f() == ([1], 3)"],
    ),
    "deep": ("def f(n):\n    x = 0\n    for _ in range(n): x = [x]\n    return x", ["assert f(2) == [[0]]", "f(198)"]),
    "endless generator": (
        "def f(n):\n    while True:\n        yield n\n        n += 1",
        ["it = f(5)", "assert next(it) == 5", "assert list(zip(it, 'ab')) == [(6, 'a'), (7, 'b')]", "assert iter(it) is it"],
    ),
    "generator protocol": (
        "def f():\n    got = yield 0\n    return got",
        ["g = f()\nnext(g)\ntry:\n    g.send(7)\nexcept StopIteration as e:\n    assert e.value == 7\nelse:\n    assert False"],
    ),
    "iterators inside containers": (
        "from itertools import tee\ndef f(xs):\n    a, b = tee(xs)\n    return [next(a)], (b, map(str, a))",
        ["head, (all_, rest) = f(iter([1, 2, 3]))", "assert head == [1] and list(rest) == ['2', '3'] and list(all_) == [1, 2, 3]"],
    ),
    "callbacks": (
        "def f(g, xs):\n    return [g(x) for x in xs]",
        [
            "assert f(lambda x: x * 2, (i for i in range(3))) == [0, 2, 4]",
            "assert f(str, [1]) == ['1'] and f(str.upper, 'a') == ['A'] and f(len, ['ab']) == [2]",
            "seen = []\nf(seen.append, [1, 2])\nassert seen == [1, 2]",
        ],
    ),
    "callbacks of callbacks": (
        "def f(g):\n    return g(lambda x: x + 1)",
        ["assert f(lambda h: h(h(1))) == 3", "assert f(lambda h: f(lambda k: k(h(1)))) == 3"],
    ),
    "a returned function": ("def f(n):\n    return lambda x: x + n", ["assert f(2)(3) == 5", "assert list(map(f(1), [1])) == [2]"]),
    "an entry as an argument": ("def f(x):\n    return x(1) if callable(x) else x", ["assert f(f) == 1"]),
    "effects keep their order": (
        "def f(xs):\n    for x in xs:\n        yield x",
        ["log = []\ndef source():\n    for i in range(3):\n        log.append(i)\n        yield i", "it = f(source())\nnext(it)\nassert log == [0]"],
    ),
    "callbacks that raise": (
        "def f(g):\n    try:\n        return g()\n    except ZeroDivisionError as e:\n        return str(e)",
        ["assert f(lambda: 1 / 0) == 'division by zero'"],
    ),
    "an own exception comes back as itself": (
        "def f(g):\n    return g()",
        ["class Mine(Exception): pass\ndef bad():\n    raise Mine", "try:\n    f(bad)\nexcept Mine:\n    pass\nelse:\n    assert False"],
    ),
    "opaque things keep their identity": (
        "def f(x, key=None):\n    return {'it': x} if key is x else x",
        ["o = object()", "assert f(o) is o", "assert f(o, key=o)['it'] is o"],
    ),
    "objects with operations": (
        "def f(x):\n    return len(x), x[0], list(x), 2 in x",
        ["class S:\n    def __len__(self): return 2\n    def __getitem__(self, i): return [1, 2][i]", "assert f(S()) == (2, 1, [1, 2], True)"],
    ),
    "exceptions": (
        "class Own(KeyError): pass\ndef f(x):\n    if x: raise Own('k')\n    raise ValueError('bad value')",
        [
            "import pytest\nwith pytest.raises(ValueError, match='bad'):\n    f(0)",
            "with pytest.raises(KeyError) as e:\n    f(1)\nassert e.value.args == ('k',)",
            "assert 0.1 + 0.2 == pytest.approx(0.3)",
        ],
    ),
    "exception classes as arguments": (
        "def f(g, error):\n    try:\n        g()\n    except error:\n        return 'caught'",
        ["assert f([].pop, IndexError) == 'caught'", "assert f({}.popitem, (IndexError, KeyError)) == 'caught'"],
    ),
    "a method of Solution": ("class Solution:\n    def f(self, x):\n        return x", ["assert f(1) == 1"]),
    "a constant": ("f = 7", ["assert f == 7"]),
    "a main part that must not run": (
        "import sys, dataclasses\nfrom __future__ import annotations\n@dataclasses.dataclass\nclass D:\n    x: int\n"
        "def f():\n    print('noise')\n    return D(1).x\nif __name__ == '__main__':\n    sys.exit(1)".replace(
            "import sys, dataclasses\nfrom __future__ import annotations", "from __future__ import annotations\nimport sys, dataclasses"
        ),
        ["assert f() == 1"],
    ),
    "own recursion": (
        "import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(n):\n    return n and 1 + f(n - 1)",
        ["assert f(20000) == 20000"],
    ),
    "threads that call back": (
        "from threading import Thread\ndef f(g):\n    ts = [Thread(target=g, args=(i,)) for i in range(4)]\n"
        "    [t.start() for t in ts]\n    [t.join() for t in ts]",
        ["seen = []\nf(seen.append)\nassert sorted(seen) == [0, 1, 2, 3]"],
    ),
    "pickling and pools": (
        "from multiprocessing import Pool\ndef g(x):\n    return x * x\ndef f(n):\n    with Pool(2) as p:\n        return p.map(g, range(n))",
        ["assert f(3) == [0, 1, 4]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_is_verified(sandbox: Backend, name: str) -> None:
    code, asserts = HONEST[name]
    finding = verify(sandbox, code, *asserts)
    assert finding.outcome == Outcome.VERIFIED, finding
    assert finding.image


# ── hacks and failures: (code, assertion, what may be found) ──

F, E, L = Outcome.FAILED, Outcome.CANDIDATE_ERROR, Outcome.CANDIDATE_LIMIT
WANTED = "assert f(1) == 42"
FORGE = """\
import json, os, struct
def forge(*messages):
    for fd in range(3, 20):
        try:
            for m in messages:
                os.write(fd, struct.pack(">I", len(m)) + m)
        except OSError:
            pass
"""
DISHONEST: dict[str, tuple[str, str, set[Outcome]]] = {
    "exit inside the call": ("import sys\ndef f(x):\n    sys.exit(0)", WANTED, {E}),
    "hard exit": ("import os\ndef f(x):\n    os._exit(0)", WANTED, {F}),
    "exit at import": ("import sys\nsys.exit(0)\ndef f(x): return 42", WANTED, {E}),
    "exit by signal": ("import os\ndef f(x):\n    os.kill(os.getpid(), 9)", WANTED, {E}),
    "exit at the end": ("import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 0", WANTED, {F}),
    "keyboard interrupt": ("def f(x):\n    raise KeyboardInterrupt", WANTED, {E}),
    "generator exit": ("def f(x):\n    raise GeneratorExit", WANTED, {E}),
    "an interrupt where the author takes all": (
        "def f(x):\n    raise SystemExit",
        "try:\n    f(1)\nexcept BaseException:\n    pass",
        {E},
    ),
    "equal to everything": ("class A:\n    __eq__ = lambda s, o: True\ndef f(x): return A()", WANTED, {F}),
    "equal to everything in a list": (
        "class A:\n    __eq__ = lambda s, o: True\ndef f(x): return [A()]",
        "assert f(1) == [42]",
        {F},
    ),
    "an int subclass": ("class A(int):\n    __eq__ = lambda s, o: True\ndef f(x): return A(1)", WANTED, {F}),
    "a callable class": ("class A:\n    __call__ = lambda s: 42\ndef f(x): return A()", WANTED, {F}),
    "an iterator with its own equality": (
        "class A:\n    def __iter__(s): return s\n    def __next__(s): return 1\n    __eq__ = lambda s, o: True\n"
        "    __len__ = lambda s: 42\ndef f(x): return A()",
        WANTED,
        {F},
    ),
    "patched builtins": (
        "import builtins, json, operator\nbuiltins.abs = lambda v: 0\njson.dumps = lambda *a, **k: '42'\n"
        "operator.eq = lambda a, b: True\nbuiltins.AssertionError = KeyError\ndef f(x): return 41",
        "assert abs(f(1) - 42) < 1e-9",
        {F},
    ),
    "frame walking": (
        "import sys, gc\ndef f(x):\n    g = sys._getframe(1)\n    needle = 'f(' + str(x) + ') =='\n    while g:\n"
        "        if needle in str(g.f_locals)[:10 ** 6]: return 43 - 1\n        g = g.f_back\n"
        "    return 43 - 1 if any(type(o) in (list, dict) and needle in str(o)[:10 ** 4] for o in gc.get_objects()[:2000]) else 0",
        WANTED,
        {F},
    ),
    "reading files of the box": (
        "import glob\ndef f(x):\n    for p in glob.glob('/box/**', recursive=True) + glob.glob('/run/**', recursive=True)"
        " + glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/environ'):\n        try:\n"
        "            if 'f(1) ==' in open(p, errors='replace').read() and not p.endswith('main.py'): return 42\n"
        "        except OSError: pass\n    return 0",
        WANTED,
        {F},
    ),
    "forged reports": (
        FORGE + "forge(b'R' + json.dumps({'at': 'end', 'count': 1}).encode(), b'R{\"at\": \"assert\", \"id\": 0}')\n"
        "def f(x): return 0",
        WANTED,
        {F, E},
    ),
    "forged frames in the call": (
        FORGE + "def f(x):\n    forge(b'[\"ok\",2,42]', b'[\"ok\",3,42]')\n    return 0",
        "assert f(1) == 42 and f(2) == 0",
        {F},
    ),
    "no JSON": (FORGE + "def f(x):\n    forge(b'\\xff{')", WANTED, {F}),
    "deep JSON": (FORGE + "def f(x):\n    forge(b'[' * 100000)", WANTED, {F}),
    "a long integer in JSON": (FORGE + "def f(x):\n    forge(b'[\"ok\",2,' + b'9' * 5000 + b']')", WANTED, {F}),
    "a token that is none": (FORGE + "def f(x):\n    forge(b'[\"ok\",2,[\"s\",[[\"l\",[]]]]]')", WANTED, {F}),
    "equality as a handle": (FORGE + "def f(x):\n    forge(b'[\"ok\",2,[\"h\",1,[\"__eq__\"]]]')", WANTED, {F}),
    "a handle that was not given": (
        FORGE + "def f(x):\n    forge(b'[\"use\",1,7,\"__call__\",[],[]]')",
        WANTED,
        {F},
    ),
    "a use that was not given": (
        FORGE + "def f(g):\n    forge(b'[\"use\",1,1,\"__globals__\",[],[]]')",
        "assert f(lambda: 0) == 42",
        {F},
    ),
    "attributes of what came": (
        "def f(g):\n    return [v for v in g.__globals__.values()]",
        "assert f(lambda: 0) == 42",
        {E},
    ),
    "a dangerous name": (FORGE + "def f(x):\n    forge(b'[\"ok\",2,[\"n\",\"builtins.eval\"]]')", WANTED, {F}),
    "an oversized frame": (
        "import os, struct\ndef f(x):\n    for fd in range(3, 20):\n        try: os.write(fd, struct.pack('>I', 1 << 31))\n"
        "        except OSError: pass",
        WANTED,
        {F},
    ),
    "half a frame": (
        "import os, struct\ndef f(x):\n    for fd in range(3, 20):\n        try: os.write(fd, struct.pack('>I', 1 << 20))\n"
        "        except OSError: pass\n    while True: pass",
        WANTED,
        {L},
    ),
    "a closed channel": ("import os\ndef f(x):\n    os.closerange(3, 99)\n    return 42", WANTED, {F, E}),
    "a flood of frames": (
        FORGE + "def f(x):\n    while True: forge(b'[\"ok\",2,1]')",
        "assert f(1) == 42 and f(2) == 42",
        {F, L},
    ),
    "a fork that answers twice": (
        "import os\ndef f(x):\n    os.fork()\n    return 1",
        "assert [f(1), f(2), f(3)] == [1, 2, 42]",
        {F, E},
    ),
    "a huge result": ("def f(x):\n    return 'x' * (20 << 20)", WANTED, {F}),
    "a list that doubles": ("def f(x):\n    for _ in range(60): x = [x, x]\n    return x", WANTED, {F, L}),
    "a list that holds itself": ("def f(x):\n    x = []\n    x.append(x)\n    return x", WANTED, {F}),
    "nested too deep": ("def f(x):\n    for _ in range(10 ** 5): x = [x]\n    return x", WANTED, {F}),
    "a coroutine": ("async def f(x):\n    return 42", WANTED, {F}),
    "an own object": ("class A: pass\ndef f(x): return A()", "f(1)", {F}),
    "a module": ("import os\ndef f(x): return os", "f(1)", {F}),
    "an exception": ("def f(x):\n    return {}['missing']", WANTED, {E}),
    "an assertion error": ("def f(x):\n    raise AssertionError", WANTED, {E}),
    "a skip": ("import unittest\ndef f(x):\n    raise unittest.SkipTest", WANTED, {E}),
    "an exception with hostile text": (
        "class X(Exception):\n    def __str__(s): raise s\n    def __init__(s): s.args = (object(),)\ndef f(x): raise X",
        WANTED,
        {E},
    ),
    "endless recursion": ("def f(x):\n    return f(x)", WANTED, {E}),
    "endless callbacks": ("def f(g):\n    return g(g)", "assert f(lambda g: f(g)) == 42", {F, E}),
    "an endless iterator": ("from itertools import repeat\ndef f(x): return repeat(x)", "assert list(f(1)) == 42", {L}),
    "an endless loop": ("def f(x):\n    while True: pass", WANTED, {L}),
    "an output flood": ("def f(x):\n    while True: print('x' * 10000)", WANTED, {L}),
    "too much memory": ("def f(x):\n    y = [b'%d' % i * (8 << 20) for i in range(60)]\n    return 42", WANTED, {L}),
    "a syntax error": ("def f(x)\n    return 42", WANTED, {E}),
    "a null byte": ("def f(x): return 42\0", WANTED, {E}),
    "no entry": ("def g(x): return 42", WANTED, {E}),
    "emptying the argument": (
        "def f(xs):\n    xs.clear()\n    return xs",
        "xs = [3, 1]\nassert f(xs) == sorted(xs)",
        {F},
    ),
    "True for 1": ("def f(x): return True", "assert f(1) is 1 or type(f(1)) is int", {F}),
    "a callback's exception let through": ("def f(g): return g()", "assert f(lambda: 1 / 0) == 42", {E}),
    "arguments that are no arguments": ("def f(): return 42", WANTED, {E}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", DISHONEST)
def test_what_is_not_proved_is_not_verified(sandbox: Backend, name: str) -> None:
    code, source, outcomes = DISHONEST[name]
    finding = verify(sandbox, code, source, wall_s=1.5)
    assert finding.outcome in outcomes, finding
    assert "42" not in finding.detail
    assert finding.code != "ok"


def test_a_later_assertion_fails_alone_and_is_evidence(sandbox: Backend) -> None:
    finding = verify(sandbox, "def f(x): return x", "assert f(1) == 1", "assert f(2) == 3", "assert f(3) == 3")
    assert (finding.outcome, finding.code, reward(finding)) == (Outcome.FAILED, "wrong", 0.0)
    assert finding.evidence["source"] == "assert f(2) == 3"
    assert finding.detail == "assertion 2 of 3 does not hold"


def test_codes_name_what_happened(sandbox: Backend) -> None:
    found = {
        name: verify(sandbox, DISHONEST[name][0], DISHONEST[name][1], wall_s=1).code
        for name in ("an own object", "an exception", "a syntax error", "no entry", "an endless loop", "hard exit")
    }
    assert list(found.values()) == ["not_plain_data", "exception", "compile", "no_entry", "wall_limit", "no_result"]


def test_a_setup_that_cannot_run_is_the_reference_s_fault(sandbox: Backend) -> None:
    finding = verify(sandbox, "def f(x): return x", "assert f(1) == 1", setup="import nowhere")
    assert (finding.outcome, finding.code, reward(finding)) == (Outcome.VERIFIER_ERROR, "bad_reference", None)


@pytest.mark.parametrize("code", ["def f(x): return 0", "def f(x): return []", "f = 0"])
def test_no_answer_can_make_a_setup_void(sandbox: Backend, code: str) -> None:
    """Law 5: if errors are void, crashing the grader is a strategy."""
    finding = verify(sandbox, code, "assert y == 1", setup="y = 1 / f(0)" if code[0] == "d" else "y = 1 / f")
    assert finding.outcome.valid
    assert finding.outcome != Outcome.VERIFIED


def test_a_setup_may_define_and_call(sandbox: Backend) -> None:
    setup = "def check(candidate):\n    assert candidate(2) == 4\nstart = f(1)"
    assert verify(sandbox, "def f(x): return x * 2", "check(f)", "assert start == 2", setup=setup).code == "ok"
    assert verify(sandbox, "def f(x): return x * 3", "check(f)", setup=setup).outcome == Outcome.FAILED


def test_more_verdicts_than_boxes_neither_block_nor_mix(sandbox: Backend) -> None:
    def one(i: int) -> Finding:
        return verify(sandbox, f"def f(x): return {i}", f"assert f(0) == {i}", wall_s=20)

    with ThreadPoolExecutor(8) as threads:
        assert {finding.outcome for finding in threads.map(one, range(16), timeout=100)} == {Outcome.VERIFIED}


@pytest.mark.parametrize(
    ("reference", "params", "pointer"),
    [
        ({"asserts": []}, {"entries": ["f"]}, "/reference/asserts"),
        ({"asserts": ["assert f("]}, {"entries": ["f"]}, "/reference/asserts/0"),
        ({"asserts": ["# f"]}, {"entries": ["f"]}, "/reference/asserts/0"),
        ({"asserts": ["assert g() == 1"]}, {"entries": ["f"]}, "/reference/asserts"),
        ({"asserts": ["assert f()"], "setup": "def"}, {"entries": ["f"]}, "/reference/setup"),
        ({"asserts": ["assert f()"]}, {}, "/verifier/params"),
        ({"asserts": ["assert f()"]}, {"entries": ["f", "class"]}, "/verifier/params/entries"),
        ({"asserts": ["assert f()"]}, {"entries": ["f", "a.b"]}, "/verifier/params/entries/1"),
        ({"asserts": ["assert f()"]}, {"entries": ["f"], "language": "c"}, "/verifier/params/language"),
    ],
)
def test_a_bad_task_is_refused_before_any_response(reference: Any, params: Any, pointer: str) -> None:
    assert [fault.pointer for fault in check_task("code_asserts", params, reference)] == [pointer]


def test_references_relate_by_what_they_expect_of_one_call() -> None:
    def relate(first: list[str], second: list[str]) -> str:
        return code_asserts.relate({"asserts": first}, {"asserts": second}, {"entries": ["f"]})

    assert relate(["assert f(1) == 2", "assert f(2)"], ["assert f(2)", "assert f(1) == 2"]) == "equal"
    assert relate(["assert f(1) == 2"], ["assert f(3) == 2"]) == "compatible"
    assert relate(["assert f(1) == 2"], ["assert f( 1 ) == 3"]) == "contradict"


def test_a_limit_out_of_range_is_refused() -> None:
    with pytest.raises(BadRequest):
        context(None, wall_s=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [asserts_candidate, asserts_trusted])
def test_a_driver_is_one_text_of_the_standard_library(side: Any) -> None:
    text = driver(side)
    compile(text, "driver.py", "exec")
    assert "verifiers" not in [line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith("from ")]


# ── doctest examples of a real library ──


def _functions() -> list[Any]:
    recipes = pytest.importorskip("more_itertools.recipes", reason="`pip install more-itertools==11.2.1` adds it")
    more = pytest.importorskip("more_itertools.more")
    return list(doctested("more_itertools", [recipes, more]))


def test_the_examples_of_a_library_verify_its_functions(sandbox: Backend) -> None:
    """Every third of its functions; two of all need methods of an object that is no plain data."""
    functions = _functions()
    chosen = functions[::3][:40]
    assert len(chosen) == 40

    def judge(function: Any) -> Outcome:
        return verify(
            sandbox, function.source, *function.asserts, setup=function.setup, entries=function.entries, wall_s=20
        ).outcome

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(judge, chosen, timeout=100))
    share = outcomes.count(Outcome.VERIFIED) / len(outcomes)
    failed = [function.name for function, found in zip(chosen, outcomes, strict=True) if found != Outcome.VERIFIED]
    print(json.dumps({"functions": len(outcomes), "share": share, "failed": failed}))
    assert share > 0.9, failed


# ── the shared cases ──

GRADED = lines(CODE, kind="asserts")
LISTED = lines(CASES, verifier="code_asserts")


def test_the_case_files_are_there() -> None:
    if not (GRADED and LISTED):
        pytest.skip(missing(CODE))


@pytest.mark.parametrize("line", GRADED, ids=lambda line: line["id"])
def test_graded_case(sandbox: Backend, line: dict[str, Any]) -> None:
    task = line["task"]
    lent = context(sandbox, **task["limits"])
    right = [line["right"]] if isinstance(line["right"], str) else line["right"]
    found = judged(code_asserts, line["submission"], task["reference"], task["verifier"]["params"], lent)
    assert found.outcome in right, (found, line["why"])
    for gold in task["gold"]:
        assert judged(code_asserts, gold, task["reference"], task["verifier"]["params"], lent).outcome == "verified"


@pytest.mark.parametrize("line", LISTED, ids=lambda line: line["id"])
def test_listed_case(sandbox: Backend, line: dict[str, Any]) -> None:
    right = line["right"]
    found = judged(code_asserts, line["response"], line["reference"], line["params"], context(sandbox))
    assert found.outcome in right.get("outcome_in", [right.get("outcome")]), (found, line["why"])
    if "reward" in right:
        assert reward(found) == right["reward"]
