"""Which statements of a package define a name, and which others those need: a function with all it stands on.

Works on syntax trees alone. Not covered: names that are made at run time (`globals()`, `setattr`, star imports).
"""

import ast
import builtins
from collections.abc import Iterable, Mapping
from typing import NamedTuple

BUILTINS = frozenset(dir(builtins))


class NotSelfContained(Exception):
    """A name cannot be had from the package's own statements; the message names it."""


class Definition(NamedTuple):
    """A top-level statement of a module, and the name it is wanted for."""

    module: str
    node: ast.stmt
    name: str = ""


class Package:
    """The modules of a package, parsed."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.paths: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        for path, text in files.items():
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            self.trees[module] = ast.parse(text)
            self.paths[module] = path
            self._sources[module] = text
        self.roots = frozenset(module.partition(".")[0] for module in self.trees)
        self._bound = {module: _bindings(tree) for module, tree in self.trees.items()}
        self._order = {module: place for place, module in enumerate(self.trees)}

    def text(self, found: Definition) -> str:
        """The statement as it stands in its file, with its decorators."""
        lines = self._sources[found.module].splitlines()
        first = min([found.node.lineno, *(node.lineno for node in getattr(found.node, "decorator_list", ()))])
        return "\n".join(lines[first - 1 : found.node.end_lineno])

    def define(self, module: str, name: str) -> Definition | None:
        """What binds this name in this module, in the package; None for a builtin.

        Raises:
            NotSelfContained: nothing does.
        """
        node = self._bound[module].get(name)
        if node is None:
            if name in BUILTINS:
                return None
            raise NotSelfContained(name)
        if isinstance(node, ast.ImportFrom):
            home = self._home(module, node)
            if home is not None:
                original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
                if original != name:
                    raise NotSelfContained(name)  # a renamed sibling would need another name than its own
                return self.define(home, name)
        return Definition(module, node, name)

    def exports(self, module: str, name: str) -> Definition | None:
        """What the package itself offers under this name, else what the module sees under it."""
        for home, bound in self._bound.items():
            if name in bound and isinstance(bound[name], ast.FunctionDef | ast.ClassDef):
                return Definition(home, bound[name], name)
        return self.define(module, name)

    def closure(self, starts: Iterable[Definition], without: frozenset[str] = frozenset()) -> str:
        """Source of these statements and of all they need: imports first, then definitions in the order of the files.

        Raises:
            NotSelfContained: something is missing, is defined twice, or needs a name of `without`.
        """
        waiting, kept, imported = list(starts), dict[int, Definition](), set[str]()
        while waiting:
            found = waiting.pop()
            if isinstance(found.node, ast.Import | ast.ImportFrom):
                imported.add(_import_of(found.node, found.name))
            if id(found.node) in kept:
                continue
            kept[id(found.node)] = found
            if without & set(names_bound(found.node)):
                raise NotSelfContained(", ".join(without))
            if isinstance(found.node, ast.Import | ast.ImportFrom):
                if self._is_own(found):
                    raise NotSelfContained(ast.unparse(found.node))
                continue
            waiting += [
                needed
                for name in sorted(names_read(found.node))
                if (needed := self.define(found.module, name)) is not None
            ]
        self._refuse_clashes(kept.values())
        return self._written(list(kept.values()), sorted(imported))

    def _written(self, kept: list[Definition], imports: list[str]) -> str:
        rest = [found for found in kept if not isinstance(found.node, ast.Import | ast.ImportFrom)]
        # What runs at import time needs its names before it, so files go before the files that import them.
        rest.sort(key=lambda found: (self._depth(found.module), self._order[found.module], found.node.lineno))
        head = "\n".join(imports) + "\n\n\n" if imports else ""
        return head + "\n\n\n".join(self.text(found) for found in rest) + "\n"

    def _depth(self, module: str, above: frozenset[str] = frozenset()) -> int:
        """How long the longest chain of imports below a module is; circles are cut."""
        below = {self._home(module, node) for node in self.trees[module].body if isinstance(node, ast.ImportFrom)}
        seen = above | {module}
        return max((1 + self._depth(other, seen) for other in below if other and other not in seen), default=0)

    def _home(self, module: str, node: ast.ImportFrom) -> str | None:
        """The module of this package that an import reads from; None for others'."""
        if node.level:
            base = module.split(".") if self.paths[module].endswith("__init__.py") else module.split(".")[:-1]
            base = base[: len(base) - node.level + 1]
            name = ".".join([*base, *((node.module or "").split(".") if node.module else ())])
        else:
            name = node.module or ""
        return name if name in self.trees else None

    def _is_own(self, found: Definition) -> bool:
        if isinstance(found.node, ast.ImportFrom):
            return bool(found.node.level) or (found.node.module or "").partition(".")[0] in self.roots
        assert isinstance(found.node, ast.Import)
        return any(alias.name.partition(".")[0] in self.roots for alias in found.node.names)

    def _refuse_clashes(self, kept: Iterable[Definition]) -> None:
        homes: dict[str, str] = {}
        for found in kept:
            for name in names_bound(found.node):
                if homes.setdefault(name, found.module) != found.module and not isinstance(
                    found.node, ast.Import | ast.ImportFrom
                ):
                    raise NotSelfContained(f"{name} is defined in {homes[name]} and {found.module}")


def _import_of(node: ast.Import | ast.ImportFrom, name: str) -> str:
    """The import of this one name."""
    aliases = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) == name]
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(aliases))
    return ast.unparse(ast.ImportFrom(node.module, aliases, node.level))


def _bindings(tree: ast.Module) -> dict[str, ast.stmt]:
    bound: dict[str, ast.stmt] = {}
    for node in tree.body:
        for name in names_bound(node):
            bound[name] = node
    return bound


def names_bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds where it stands, compound statements searched, function bodies not."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    found = [
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and not isinstance(node, ast.Expr)
    ]
    for block in ("body", "orelse", "finalbody", "handlers"):
        for inner in getattr(node, block, ()):
            parts = inner.body if isinstance(inner, ast.ExceptHandler) else [inner]
            found += [name for part in parts for name in names_bound(part)]
    return found


def names_read(node: ast.AST) -> set[str]:
    """The names that a statement reads from outside of itself, annotations included."""
    read: set[str] = set()
    local: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (read if isinstance(part.ctx, ast.Load) else local).add(part.id)
        elif isinstance(part, ast.arg):
            local.add(part.arg)
        elif isinstance(part, ast.ExceptHandler | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            local |= {part.name} if part.name else set()
        elif isinstance(part, ast.Import | ast.ImportFrom):
            local |= {alias.asname or alias.name.partition(".")[0] for alias in part.names}
    return read - local
