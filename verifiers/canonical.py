"""Canonical JSON: the one encoding that hashes are taken of.

Keys sorted, no blanks, UTF-8 as it is, NaN and infinities refused: equal values give equal bytes in any process.
"""

import hashlib
import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """Encode `value` so that equal values give equal text.

    Raises:
        ValueError: the value holds NaN or an infinity, or a lone surrogate.
        TypeError: the value holds something that is not JSON.
    """
    text = _ENCODER.encode(value)
    text.encode("utf-8")  # a lone surrogate cannot be stored or hashed: refuse it here
    return text


def content_hash(value: Any) -> str:
    """SHA-256, as 64 hex digits, of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
