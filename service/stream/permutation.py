"""A keyed permutation that is computed, not stored: place k of pass j over any number of positions, in O(1).

A Feistel network over a grid of about √count × √count cells; places outside the range are walked past (fewer than one
in √count). Each pass has a permutation of its own; the same key gives the same order in any process.
"""

import hashlib
import math
from collections.abc import Iterator

_ROUNDS = 6


def permuted(key: str, count: int, place: int) -> int:
    """The position in [0, count) at this place of an endless sequence of passes, each a permutation of all positions.

    Raises:
        ValueError: there is no position.
    """
    if count < 1:
        raise ValueError("a permutation needs at least one position")
    turn, found = divmod(place, count)
    rows = math.isqrt(count - 1) + 1
    columns = -(-count // rows)
    secret = hashlib.blake2b(f"{key}:{turn}".encode(), digest_size=32).digest()
    while True:
        found = _mixed(secret, found, rows, columns)
        if found < count:
            return found


def units(key: str) -> Iterator[float]:
    """An endless sequence of numbers in [0, 1) that is a function of the key alone."""
    counter = 0
    while True:
        digest = hashlib.blake2b(f"{key}#{counter}".encode(), digest_size=64).digest()
        for start in range(0, 64, 8):
            yield (int.from_bytes(digest[start : start + 8], "big") >> 11) / 2**53
        counter += 1


def _mixed(key: bytes, value: int, rows: int, columns: int) -> int:
    row, column = divmod(value, columns)
    for number in range(_ROUNDS):
        if number % 2:
            column = (column + _round(key, number, row)) % columns
        else:
            row = (row + _round(key, number, column)) % rows
    return row * columns + column


def _round(key: bytes, number: int, half: int) -> int:
    digest = hashlib.blake2b(b"%d.%d" % (number, half), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "big")
