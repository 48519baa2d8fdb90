"""Functions of an installed package become tasks: implement the function from its signature and its documentation.

The docstring's examples are the hidden tests, so they are taken out of the prompt (or half of them, by a seeded draw).
The gold is the real source with the siblings it stands on. Not covered: classes, and functions without examples that
can be assertions by their looks (see `examples.py`); they are dropped with the reason.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from factory.contract import Candidate, Dropped, Made, Source, SourceMissing
from factory.extract.examples import Block, Examples, read_examples
from factory.extract.package_names import BUILTINS, Definition, NotSelfContained, Package
from factory.extract.package_source import load_package
from factory.stream import SeededStream
from service.store.drafts import Message, Origin, TaskLimits, VerifierChoice
from service.store.drafts import Source as SourceDraft

DEFAULT_SOURCE = "pkg:pypi/more-itertools"
HIDDEN, HALF = "hidden", "half"

PROMPT = """\
Write the Python function `{name}`.

Signature:

```python
{signature}
```

Documentation:

{prose}
{shown}
Answer with the whole function, and everything it needs, in one Python code block. Only the standard library is \
available; the package `{package}` is not.{sentinels}"""

SENTINELS = (
    " A default that starts with an underscore stands for a private sentinel: use one of your own, or another way to"
    " tell that the argument is missing."
)


class _Function(NamedTuple):
    module: str
    node: ast.FunctionDef


class DocstringTasks:
    """The generator. Its sequence is the package's public functions, in the order of its files."""

    name = "code.docstring"
    version = "1"
    domain = "code.python"
    needs_sandbox = True
    knobs_schema: Mapping[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "examples": {
                "type": "string",
                "enum": [HIDDEN, HALF],
                "default": HIDDEN,
                "description": "Whether the prompt shows no example, or a seeded half of them (the rest is hidden).",
            }
        },
    }

    def load(self, uri: str | None) -> Source | None:
        return load_package(uri or DEFAULT_SOURCE)

    def candidates(
        self, source: Source | None, seed: int, knobs: Mapping[str, Any], start: int = 0
    ) -> Iterator[Made | Dropped]:
        if source is None:
            raise SourceMissing("this generator reads a package")
        package = Package(source.files)
        for index, function in enumerate(_public(package)):
            if index < start:
                continue
            try:
                yield Made(index, self._candidate(index, function, package, source, seed, knobs))
            except _Unusable as error:
                yield Dropped(index, error.code, f"{function.node.name}: {error.detail}")

    def _candidate(
        self, index: int, function: _Function, package: Package, source: Source, seed: int, knobs: Mapping[str, Any]
    ) -> Candidate:
        node, name = function.node, function.node.name
        found = read_examples(ast.get_docstring(node) or "")
        gold, setup, usable = _parts(function, package, found)
        visible, hidden = _split(usable, knobs["examples"], SeededStream(self.name, self.version, seed, name))
        asserts = [block.code for block in hidden]
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        stubs = [f"def {name}(*args, **kwargs):\n    {body}\n" for body in ("pass", "return None")]
        return Candidate(
            domain=self.domain,
            prompt=[Message(role="user", content=_prompt(node, found, visible, source))],
            verifier=VerifierChoice(name="code_asserts", params={"language": "python", "entries": [name]}),
            reference={"asserts": asserts, "setup": setup},
            gold=[f"```python\n{gold}```"],
            nulls=["", *stubs],
            limits=TaskLimits(wall_s=10),
            source=SourceDraft(
                uri=source.uri,
                licence=source.licence,
                span=f"{package.paths[function.module]}#L{node.lineno}-L{node.end_lineno}"[:200],
            ),
            features={
                **knobs,
                "lines": lines,
                "arguments": len(node.args.args) + len(node.args.kwonlyargs),
                "tests": sum(block.asserts for block in hidden),
            },
            tags=[f"function:{name}"],
            task_type="code.implement",
            origin=Origin(
                generator=self.name,
                generator_version=self.version,
                seed=seed,
                index=index,
                knobs=dict(knobs),
                source_sha256=source.sha256,
            ),
        )


class _Unusable(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class _Parts(NamedTuple):
    gold: str
    setup: str
    usable: list[Block]


def _public(package: Package) -> list[_Function]:
    """Top-level functions that the package offers and that have examples."""
    found = []
    for module, tree in package.trees.items():
        offered = _offered(tree)
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            if (offered is None or node.name in offered) and ">>>" in (ast.get_docstring(node) or ""):
                found.append(_Function(module, node))
    return found


def _offered(tree: ast.Module) -> set[str] | None:
    """The names in `__all__`, or None when the module has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return None


def _parts(function: _Function, package: Package, found: Examples) -> _Parts:
    """The gold, the set-up of the tests, and the blocks that can be tests."""
    name = function.node.name
    try:
        gold = package.closure([Definition(function.module, function.node)])
    except NotSelfContained as error:
        raise _Unusable("not_self_contained", str(error)) from error
    imports = [text for text in found.imports if not _own_import(text, package)]
    imported = {alias for text in imports for alias in _imported(text)}
    usable, needed = [], dict[str, Definition]()
    for block in found.blocks:
        try:
            for read in sorted(block.reads - imported - BUILTINS - {name}):
                definition = package.exports(function.module, read)
                if definition is not None:
                    package.closure([definition], without=frozenset({name}))
                    needed[read] = definition
        except NotSelfContained:
            continue
        if name in block.reads:
            usable.append(block)
    if not usable:
        raise _Unusable("no_usable_example", f"{found.dropped} examples cannot be tests")
    reads = frozenset().union(*(block.reads for block in usable))
    support = package.closure([needed[read] for read in sorted(needed) if read in reads], frozenset({name}))
    setup = "\n".join([*imports, support]).strip()
    return _Parts(gold, setup + "\n" if setup else "", usable)


def _own_import(text: str, package: Package) -> bool:
    node = ast.parse(text).body[0]
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in package.roots
    return isinstance(node, ast.Import) and any(a.name.partition(".")[0] in package.roots for a in node.names)


def _imported(text: str) -> list[str]:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.Import | ast.ImportFrom)
    return [alias.asname or alias.name.partition(".")[0] for alias in node.names]


class _Halves(NamedTuple):
    visible: Sequence[Block]
    hidden: Sequence[Block]


def _split(blocks: Sequence[Block], mode: str, stream: SeededStream) -> _Halves:
    if mode == HIDDEN:
        return _Halves((), blocks)
    if len(blocks) < 2:
        raise _Unusable("too_few_examples", "one block of examples cannot be halved")
    chosen = set(stream.sample(range(len(blocks)), len(blocks) // 2))
    return _Halves(
        [block for place, block in enumerate(blocks) if place in chosen],
        [block for place, block in enumerate(blocks) if place not in chosen],
    )


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}:"


def _prompt(node: ast.FunctionDef, found: Examples, visible: Sequence[Block], source: Source) -> str:
    shown = "\n\n".join(block.shown for block in visible)
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    private = any(isinstance(default, ast.Name) and default.id.startswith("_") for default in defaults)
    return PROMPT.format(
        name=node.name,
        signature=_signature(node),
        prose=found.prose,
        shown=f"\nExamples:\n\n```pycon\n{shown}\n```\n" if shown else "",
        package=source.uri.rpartition("/")[2].partition("@")[0].replace("-", "_"),
        sentinels=SENTINELS if private else "",
    )
