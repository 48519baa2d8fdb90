"""Keyset pages: signed, opaque cursors that belong to one list with its filters and sort.

A cursor is `base64(version | HMAC | canonical JSON of the last row's sort key)`; the HMAC covers the list's name and
filters, so a cursor of another list or filter is refused instead of giving a wrong page.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from service.errors import BadCursor
from verifiers.canonical import canonical_json

Row = TypeVar("Row")
VERSION = b"1"
MAX_LIMIT, DEFAULT_LIMIT = 200, 50


class Page(NamedTuple, Generic[Row]):
    """One page and the cursor of the next one, None at the end."""

    items: Sequence[Row]
    next: str | None


class Pager(NamedTuple):
    """How one list is paged: the secret, the list with its filters, the cursor that came with the request, the size."""

    secret: bytes
    scope: Mapping[str, Any]
    cursor: str | None
    limit: int

    def after(self) -> list[Any] | None:
        """The sort key to start after, None for the first page.

        Raises:
            BadCursor: the cursor was changed, or belongs to another list or other filters.
        """
        if self.cursor is None:
            return None
        try:
            data = base64.urlsafe_b64decode(self.cursor.encode("ascii"))
        except (binascii.Error, UnicodeEncodeError) as error:
            raise BadCursor from error
        version, tag, key = data[:1], data[1:17], data[17:]
        if version != VERSION or not hmac.compare_digest(tag, self._tag(key)):
            raise BadCursor
        found: list[Any] = json.loads(key)
        return found

    def page(self, rows: Sequence[Row], key: Callable[[Row], Sequence[Any]]) -> Page[Row]:
        """Cut `rows` (read with `limit + 1`) to a page; `key` gives a row's sort key, unique among rows."""
        if len(rows) <= self.limit:
            return Page(rows, None)
        kept = rows[: self.limit]
        text = canonical_json(list(key(kept[-1]))).encode()
        return Page(kept, base64.urlsafe_b64encode(VERSION + self._tag(text) + text).decode())

    def _tag(self, key: bytes) -> bytes:
        message = canonical_json(dict(self.scope)).encode() + b"\0" + key
        return hmac.new(self.secret, b"cursor:" + message, hashlib.sha256).digest()[:16]
