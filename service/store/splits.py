"""The split of a family: drawn once, by a keyed hash of what the family is about, never by chance.

The same task imported into another database with the same key lands in the same split.
"""

import hashlib
import hmac
from typing import NamedTuple

from service.words import Split


class SplitRule(NamedTuple):
    """The key and the shares of holdout and eval; the rest is train."""

    key: bytes
    holdout: float
    eval: float


def draw_split(rule: SplitRule, basis: str, generator: str | None) -> Split:
    """The split of a new family.

    `basis` is the identity of its root. Whole generators go to holdout, because instances of one generator teach each
    other; the instances of the others go to eval or train.
    """
    if generator is not None:
        if _unit(rule.key, f"gen:{generator}") < rule.holdout:
            return Split.HOLDOUT
        return Split.EVAL if _unit(rule.key, basis) < rule.eval else Split.TRAIN
    u = _unit(rule.key, basis)
    if u < rule.holdout:
        return Split.HOLDOUT
    return Split.EVAL if u < rule.holdout + rule.eval else Split.TRAIN


def _unit(key: bytes, text: str) -> float:
    digest = hmac.new(key, b"split:" + text.encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
