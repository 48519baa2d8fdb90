"""The source tree as the house rules see it."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("taskmill", "service", "factory", "verifiers", "sandbox", "trainer", "client/taskmill_client")


class Source(NamedTuple):
    """One file: its path from the root, its lines, its syntax tree."""

    path: str
    lines: list[str]
    tree: ast.Module


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Every Python file below the folders (default: our packages)."""
    found = []
    for folder in folders or PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            found.append(Source(str(path.relative_to(ROOT)), text.splitlines(), ast.parse(text)))
    return tuple(found)


def calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Every call with its dotted name as far as it is written out."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def escaped(source: Source, line: int, rule: str) -> bool:
    """Whether the line carries a written-down escape, `# house: H3 reason`."""
    return f"# house: {rule} " in source.lines[line - 1]


def tracked() -> list[str]:
    """Every file that git knows."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    return listed.stdout.splitlines()
