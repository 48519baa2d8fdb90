"""The root of a snapshot: a Merkle tree over its members, so that a leaf can be proved or redacted.

Leaf SHA-256(0x00 ‖ salt ‖ task id ‖ version ‖ content hash ‖ split ‖ weight), node SHA-256(0x01 ‖ left ‖ right), an odd
node is carried up unchanged; members are sorted by (task id, version). Each salt is a keyed hash of its task and
version: without it nobody can guess a leaf.
"""

import hashlib
import hmac
from collections.abc import Iterable
from typing import NamedTuple


class Leaf(NamedTuple):
    task_id: str
    version: int
    content_hash: str
    split: str
    weight: str = "1"


def root(key: bytes, members: Iterable[Leaf]) -> str:
    """The root as 64 hex digits; of no member at all, the hash of nothing."""
    level = [_leaf(key, member) for member in sorted(members)]
    if not level:
        return hashlib.sha256(b"").hexdigest()
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()


def _leaf(key: bytes, member: Leaf) -> bytes:
    # a zero byte parts the fields, so that no two members share an encoding
    identity = f"{member.task_id}\0{member.version}".encode()
    salt = hmac.digest(key, b"snapshot:" + identity, "sha256")
    rest = "\0".join((member.content_hash, member.split, member.weight)).encode()
    return hashlib.sha256(b"\x00" + salt + identity + b"\0" + rest).digest()
