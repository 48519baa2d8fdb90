"""Cursors: joined pages are the whole, and a cursor fits only the list that made it."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BadCursor
from service.store import events
from service.store.paging import Pager
from service.store.session import Store

SECRET = b"s" * 32


def _pager(cursor: str | None = None, limit: int = 3, **scope: str) -> Pager:
    return Pager(SECRET, {"list": "l"} | scope, cursor, limit)


@given(keys=st.lists(st.integers(0, 10**9), unique=True, max_size=40), limit=st.integers(1, 7))
def test_joined_pages_are_the_whole(keys: list[int], limit: int) -> None:
    rows, seen, cursor = sorted(keys), [], None
    while True:
        pager = _pager(cursor, limit)
        after = pager.after()
        page = pager.page([row for row in rows if after is None or row > after[0]][: limit + 1], lambda row: [row])
        assert len(page.items) <= limit
        seen += page.items
        if page.next is None:
            break
        cursor = page.next
    assert seen == rows


@given(key=st.text(max_size=20), place=st.integers(0, 400), bit=st.integers(0, 7))
def test_a_changed_cursor_is_refused(key: str, place: int, bit: int) -> None:
    cursor = _pager(limit=1).page([key, key], lambda row: [row]).next
    assert cursor is not None
    assert _pager(cursor).after() == [key]
    raw = bytearray(base64.urlsafe_b64decode(cursor))
    raw[place % len(raw)] ^= 1 << bit
    with pytest.raises(BadCursor):
        _pager(base64.urlsafe_b64encode(raw).decode()).after()


@given(text=st.text(max_size=60))
def test_any_text_is_no_cursor(text: str) -> None:
    with pytest.raises(BadCursor):
        _pager(text).after()


def test_a_cursor_fits_its_filters_and_its_server_alone() -> None:
    cursor = _pager(limit=1, status="active").page([1, 2], lambda row: [row]).next
    assert _pager(cursor, status="active").after() == [1]
    with pytest.raises(BadCursor):
        _pager(cursor, status="pending").after()
    with pytest.raises(BadCursor):
        Pager(b"other", {"list": "l", "status": "active"}, cursor, 1).after()


def test_pages_hold_while_rows_are_added(store: Store) -> None:
    """Rows that come between two pages are newer than the first page: none is skipped, none comes twice."""
    with store.writing() as db:
        for number in range(7):
            events.record(db, "s", "k", "t", data={"n": number})
    seen, cursor = [], None
    while True:
        with store.reading() as db:
            page = events.of_subject(db, "s", _pager(cursor))
            seen += [row.data["n"] for row in page.items]
        if page.next is None:
            break
        cursor = page.next
        with store.writing() as db:
            events.record(db, "s", "k", "t", data={"n": 100})
    assert seen == [6, 5, 4, 3, 2, 1, 0]
