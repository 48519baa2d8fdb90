"""Style sheet, scripts and icon under one directory named by the hash of all of them, so that they never go stale."""

import hashlib
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@cache
def contents() -> MappingProxyType[str, bytes]:
    """Every static file by its name, read once."""
    folder = files("service.dashboard") / "static"
    found = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
    return MappingProxyType(dict(sorted(found.items())))


@cache
def build() -> str:
    """The hash in the address of all static files."""
    digest = hashlib.sha256()
    for name, content in contents().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:12]
