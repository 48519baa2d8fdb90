"""What a verdict depends on, as one hash: stored with every verdict, part of every cache key.

Verifier name, version and source (its modules of this package, followed through their imports), params, reference,
Python, the libraries that the verifier uses, the sandbox image. A composite includes its parts.
"""

import ast
import hashlib
import platform
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from verifiers.canonical import canonical_json
from verifiers.parsing import parse_python

_PACKAGE = Path(__file__).parent
_IMPORTS_OF_LIBRARIES = {
    "math_verify": ("math-verify", "latex2sympy2_extended", "sympy", "antlr4-python3-runtime"),
    "sympy": ("sympy",),
    "jsonschema": ("jsonschema",),
    "pint": ("pint",),
    "sqlglot": ("sqlglot",),
}


@lru_cache(maxsize=20_000)
def fingerprint(name: str, params_hash: str, reference_hash: str, image: str | None, parts: tuple[str, ...]) -> str:
    """SHA-256 over everything listed above, as 64 hex digits. `parts` are the verifiers inside a composite."""
    stated = [_verifier(part) for part in (name, *sorted(set(parts)))]
    text = canonical_json([stated, params_hash, reference_hash, image, platform.python_version()])
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256)
def _verifier(name: str) -> list[object]:
    from verifiers.registry import VERIFIERS  # here, so that the registry may be imported without this module

    if name not in VERIFIERS:
        return [name]
    module = VERIFIERS[name]
    file = Path(getattr(module, "__file__", "") or _PACKAGE / f"{name}.py")
    sources: dict[str, str] = {}
    libraries = {"jsonschema"}
    _follow(file, sources, libraries)
    packages = sorted({package for library in libraries for package in _IMPORTS_OF_LIBRARIES.get(library, ())})
    return [name, module.version, sorted(sources.items()), [[package, _version(package)] for package in packages]]


def _follow(file: Path, sources: dict[str, str], libraries: set[str]) -> None:
    """Collect the hashes of a module and of what it imports from this package."""
    if file.stem in sources or file.stem == "registry" or not file.is_file():
        return
    text = file.read_bytes()
    sources[file.stem] = hashlib.sha256(text).hexdigest()
    for imported in _imported(ast.walk(parse_python(text))):
        first, _, rest = imported.partition(".")
        if first != "verifiers":
            libraries.add(first)
        elif rest:
            _follow(_PACKAGE / (rest.replace(".", "/") + ".py"), sources, libraries)


def _imported(nodes: Iterable[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
