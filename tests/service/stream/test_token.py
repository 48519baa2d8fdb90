import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.store.ids import new_id
from service.stream.token import SPAN, BadToken, Checkpoint, ranges, read, signed

STREAM = new_id("str")


def checkpoint(watermark: int, above: set[int]) -> Checkpoint:
    return Checkpoint(STREAM, "ab" * 32, watermark, frozenset(above), 12)


@given(st.integers(0, 10**6), st.sets(st.integers(1, 300)))
def test_a_token_says_what_it_was_made_of(watermark: int, above: set[int]) -> None:
    made = checkpoint(watermark, {watermark + place for place in above})
    assert read(b"secret", signed(b"secret", made)) == made


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98, 1.0])
def test_a_token_stays_below_four_kilobytes_in_any_order_of_acknowledgements(share: float) -> None:
    dice = random.Random(1)
    above = {10**9 + place for place in range(1, SPAN) if dice.random() < share}
    assert len(signed(b"secret", checkpoint(10**9, above))) < 4000


@given(st.integers(0, 200), st.integers(1, 255))
def test_a_changed_token_is_refused(place: int, flip: int) -> None:
    token = signed(b"secret", checkpoint(5, {7, 8, 11}))
    at = place % len(token)
    changed = token[:at] + chr((ord(token[at]) ^ flip) % 128) + token[at + 1 :]
    if changed == token:
        return
    try:
        assert read(b"secret", changed) == checkpoint(5, {7, 8, 11})  # base64 has spare bits in its last letter
        assert at == len(token) - 1
    except BadToken:
        pass


@pytest.mark.parametrize("text", ["", "x", "é", "AAAA", "a" * 5000, "\0"])
def test_other_text_is_no_token(text: str) -> None:
    with pytest.raises(BadToken):
        read(b"secret", text)


def test_a_token_of_another_secret_is_refused() -> None:
    with pytest.raises(BadToken):
        read(b"other", signed(b"secret", checkpoint(0, set())))


def test_ranges() -> None:
    assert ranges([5, 1, 2, 3, 9, 10]) == [[1, 3], [5, 5], [9, 10]]
