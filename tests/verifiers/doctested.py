"""Functions of an installed package with the assertions that their doctest examples make."""

import ast
import doctest
import inspect
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, NamedTuple


class Doctested(NamedTuple):
    name: str
    source: str
    """The modules without docstrings: the function and its siblings."""
    setup: str
    asserts: list[str]
    entries: list[str]


class Steps(NamedTuple):
    statements: list[str]
    literal: int
    """How many of them compare with a literal; the others are steps on the way."""


def doctested(package: str, modules: list[ModuleType]) -> Iterator[Doctested]:
    """The functions whose examples have at least one literal as output and hold in one process."""
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    imports = "\n".join(_imports(tree) for tree in trees)
    source = "\n".join(_bare(tree) for tree in trees)
    compiled = compile(source + "\n" + imports, "siblings", "exec")
    known = {name: value for module in modules for name, value in vars(module).items() if not name.startswith("_")}
    own = {name for name, value in known.items() if (getattr(value, "__module__", None) or "").startswith(package)}
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or name.startswith("_"):
                continue
            steps = _steps(package, inspect.getdoc(function) or "")
            if not steps.literal or not _holds(compiled, steps):
                continue
            used = {n.id for step in steps.statements for n in ast.walk(ast.parse(step)) if isinstance(n, ast.Name)}
            yield Doctested(name, source, imports, steps.statements, sorted((used & own) | {name}))


def _holds(siblings: CodeType, steps: Steps) -> bool:
    space: dict[str, Any] = {"__name__": "main"}
    try:
        for text in (siblings, *steps.statements):
            exec(text, space)
    except Exception:
        return False  # an example of random numbers, or of an object's text
    return True


def _imports(tree: ast.Module) -> str:
    found = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in found if not (isinstance(node, ast.ImportFrom) and node.level))


def _bare(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.level)]
    return ast.unparse(tree)


def _steps(package: str, doc: str) -> Steps:
    statements: list[str] = []
    literal = 0
    for example in doctest.DocTestParser().get_examples(doc):
        source = example.source.strip()
        if doctest.SKIP in example.options or source.startswith(f"from {package} import"):
            continue
        if example.exc_msg is not None:
            body = "\n    ".join(source.splitlines())
            statements.append(f"try:\n    {body}\nexcept Exception:\n    pass\nelse:\n    assert False")
            continue
        value = _literal(example.want)
        if value is _NONE or not _expression(source):
            statements.append(source)
            continue
        literal += 1
        statements.append(f"assert ({source}\n) == ({value!r})")
    return Steps(statements, literal)


_NONE = object()


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return _NONE


def _expression(source: str) -> bool:
    try:
        compile(source, "", "eval")
    except SyntaxError:
        return False
    return True
