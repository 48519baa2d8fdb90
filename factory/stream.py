"""Seeded randomness of generators: SHA-256 streams and permutations, the same in every process and Python version."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededStream:
    """Numbers drawn from SHA-256 of the words that name the stream. No global state, no `random`."""

    def __init__(self, *words: object) -> None:
        self._key = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
        self._block = b""
        self._blocks = 0

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` − 1, each as likely as the others."""
        if bound < 1:
            raise ValueError("the bound must be positive")
        size = (bound.bit_length() + 7) // 8
        limit = 256**size // bound * bound  # numbers beyond it would make small ones likelier
        while (value := int.from_bytes(self._take(size), "big")) >= limit:
            pass
        return value % bound

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """`n` different places of `items`, in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in range(n)]

    def _take(self, size: int) -> bytes:
        while len(self._block) < size:
            self._block += hashlib.sha256(self._key + self._blocks.to_bytes(8, "big")).digest()
            self._blocks += 1
        taken, self._block = self._block[:size], self._block[size:]
        return taken


def permuted(index: int, size: int, *words: object) -> int:
    """The place of `index` in a seeded order of 0 … `size` − 1: every number once, so that a small space runs out.

    A Feistel network of four rounds over the next even number of bits, walked until it lands inside.
    """
    if not 0 <= index < size:
        raise ValueError(f"{index} is not below {size}")
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    keys = [hashlib.sha256("\x1f".join(map(str, (*words, size, turn))).encode()).digest() for turn in range(4)]
    value = index
    while True:
        left, right = value >> half, value & mask
        for key in keys:
            digest = hashlib.sha512(key + right.to_bytes((half + 7) // 8, "big")).digest()
            left, right = right, left ^ (int.from_bytes(digest * (half // 512 + 1), "big") & mask)
        value = left << half | right
        if value < size:
            return value
