"""Docstring examples turned into assertions. Nothing is run: what cannot be an assertion by its looks is dropped.

Examples that share variables stand and fall together: they become one block of statements. Dropped are examples that
print, abbreviate, depend on chance or time, or show something other than a literal.
"""

import ast
import builtins
import doctest
from collections.abc import Sequence
from typing import NamedTuple

# fmt: off
UNSTEADY = frozenset(
    (
        "print", "input", "open", "random", "randrange", "shuffle", "choice", "sample", "uniform", "seed", "sleep",
        "getrandbits",
        "monotonic", "time", "perf_counter", "id", "hash", "globals", "locals", "vars", "dir", "help", "exec", "eval",
    )
)
# fmt: on
_EXCEPTIONS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)


class Block(NamedTuple):
    """Statements that share variables, with at least one assertion. `shown` is how the docstring shows them."""

    code: str
    shown: str
    reads: frozenset[str]
    asserts: int


class Examples(NamedTuple):
    """What a docstring gives: its text without examples, the imports they make, the blocks, and how many fell out."""

    prose: str
    imports: tuple[str, ...]
    blocks: tuple[Block, ...]
    dropped: int


class _One(NamedTuple):
    """An example as code: `asserting` when it became an assertion; `code` None when it cannot be one."""

    code: str | None
    shown: str
    reads: frozenset[str]
    binds: frozenset[str]
    asserting: bool


def read_examples(docstring: str) -> Examples:
    """Split a docstring into prose and blocks of assertions."""
    parts = doctest.DocTestParser().parse(docstring)
    prose = "".join(part for part in parts if isinstance(part, str))
    examples = [part for part in parts if isinstance(part, doctest.Example)]
    imports: list[str] = []
    found: list[_One] = []
    for example in examples:
        try:
            tree = ast.parse(example.source)
        except SyntaxError:
            found.append(_One(None, "", frozenset(), frozenset(), False))
            continue
        if not example.want and all(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body):
            imports += [ast.unparse(node) for node in tree.body]
        else:
            found.append(_converted(example, tree))
    blocks = [block for group in _grouped(found) if (block := _block(group)) is not None]
    kept = sum(block.asserts for block in blocks)
    wanted = sum(1 for example in examples if example.want or example.exc_msg)
    return Examples(_tidy(prose), tuple(dict.fromkeys(imports)), tuple(blocks), wanted - kept)


def _converted(example: doctest.Example, tree: ast.Module) -> _One:
    reads, binds = _names(tree)
    shown = _shown(example)
    code = None if reads & UNSTEADY or any(example.options.values()) else _code(example, tree)
    return _One(code, shown, reads, binds, bool(example.want or example.exc_msg))


def _code(example: doctest.Example, tree: ast.Module) -> str | None:
    if example.exc_msg is not None:
        return _raising(example, tree)
    if not example.want:
        return ast.unparse(tree)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr) or "..." in example.want:
        return None
    try:
        want = ast.parse(example.want.strip(), mode="eval").body
        value = ast.literal_eval(want)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    expression = ast.unparse(tree.body[0].value)
    if value is None or isinstance(value, bool):
        return f"assert ({expression}) is {value}"
    return f"assert ({expression}) == {ast.unparse(want)}"


def _raising(example: doctest.Example, tree: ast.Module) -> str | None:
    name = (example.exc_msg or "").partition(":")[0].strip().rpartition(".")[2]
    if name not in _EXCEPTIONS or len(tree.body) != 1:
        return None
    body = "\n".join("    " + line for line in ast.unparse(tree).splitlines())
    return f"try:\n{body}\nexcept {name}:\n    pass\nelse:\n    raise AssertionError('no {name}')"


def _names(tree: ast.Module) -> tuple[frozenset[str], frozenset[str]]:
    reads: set[str] = set()
    binds: set[str] = set()
    inner: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) else binds).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            binds.add(node.name)
        elif isinstance(node, ast.arg):
            inner.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            binds |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.comprehension):
            inner |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
    return frozenset(reads - inner), frozenset(binds - inner)


def _grouped(found: Sequence[_One]) -> list[list[_One]]:
    """Examples that share a variable, directly or through others, in the order of the docstring."""
    group_of = list(range(len(found)))
    binder: dict[str, int] = {}
    for place, one in enumerate(found):
        for name in sorted(one.reads | one.binds):
            if name in binder:
                old, new = group_of[place], group_of[binder[name]]
                group_of = [new if group == old else group for group in group_of]
        for name in one.binds:
            binder[name] = place
    groups: dict[int, list[_One]] = {}
    for place, one in enumerate(found):
        groups.setdefault(group_of[place], []).append(one)
    return list(groups.values())


def _block(group: Sequence[_One]) -> Block | None:
    """The longest start of the group that is all code and ends with an assertion."""
    kept: list[_One] = []
    for one in group:
        if one.code is None:
            break  # what follows may depend on it
        kept.append(one)
    while kept and not kept[-1].asserting:
        kept.pop()
    if not kept:
        return None
    bound = frozenset().union(*(one.binds for one in kept))
    reads = frozenset().union(*(one.reads for one in kept)) - bound
    code = "\n".join(one.code for one in kept if one.code is not None)
    return Block(code, "\n".join(one.shown for one in kept), reads, sum(one.asserting for one in kept))


def _shown(example: doctest.Example) -> str:
    first, *rest = example.source.rstrip("\n").split("\n")
    lines = [f">>> {first}", *(f"... {line}" for line in rest)]
    return "\n".join([*lines, *example.want.rstrip("\n").split("\n")] if example.want else lines)


def _tidy(prose: str) -> str:
    """The prose without the holes that removed examples leave."""
    lines: list[str] = []
    for line in prose.strip("\n").splitlines():
        line = line.rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip()
