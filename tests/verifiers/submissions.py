"""Submissions for assertions: honest ones that must be verified, and others that must not be."""
# ruff: noqa: E501 a program is one literal, however long

from verifiers.contract import Outcome

HONEST: dict[str, tuple[str, list[str]]] = {
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
        "from __future__ import annotations\nimport sys, dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int\n"
        "def f():\n    print('noise')\n    return D(1).x\nif __name__ == '__main__':\n    sys.exit(1)",
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
