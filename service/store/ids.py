"""Identifiers: a type prefix and a UUIDv7 (RFC 9562), so that they sort by time and keyset pages are cheap."""

import re
import secrets
import threading
import time

_lock = threading.Lock()
_last = 0

PATTERN = re.compile(r"[a-z]{2,5}_[0-9a-f]{32}")
_VERSION = re.compile(r"[0-9]{1,9}")


def new_id(prefix: str) -> str:
    """A new identifier, `prefix` + `_` + 32 hex digits, larger than every one made before in this process."""
    global _last
    with _lock:
        # 48 bits of milliseconds and 12 bits of a counter, so that ids of one millisecond keep their order
        _last = max(_last + 1, time.time_ns() // 1_000_000 << 12)
        stamp = _last
    milliseconds, counter = stamp >> 12, stamp & 0xFFF
    value = milliseconds << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | secrets.randbits(62)
    return f"{prefix}_{value:032x}"


def task_ref(task_id: str, version: int) -> str:
    """The opaque reference that rows of a stream carry; only the service resolves it."""
    return f"tm:{task_id}:{version}"


def parse_ref(ref: str) -> tuple[str, int] | None:
    """The task id and version of a reference, or None when the text is none."""
    scheme, _, rest = ref.partition(":")
    task_id, _, version = rest.rpartition(":")
    if scheme != "tm" or not PATTERN.fullmatch(task_id) or not _VERSION.fullmatch(version):
        return None
    return task_id, int(version)
