"""Files that a request asks for, read after everything of the program is dead; the reading is in `box_init.collect`."""

from collections.abc import Mapping
from typing import Any

from sandbox.contract import Artefact

FILE_BYTES = 4 << 20
TOTAL_BYTES = 16 << 20


def command(paths: list[str]) -> dict[str, Any]:
    """What the supervisor is told."""
    return {"do": "collect", "paths": paths, "file_bytes": FILE_BYTES, "total_bytes": TOTAL_BYTES}


def from_event(event: Mapping[str, Any]) -> Artefact:
    return Artefact(str(event["path"]), int(event["size"]), event["content"], event["refused"])
