"""The checkpoint token: which groups a trainer's checkpoint has seen, small enough to lie inside that checkpoint.

It names the stream, the snapshot, the watermark (every ordinal below it is closed), the completed ordinals above it and
the draw counter, signed with the server's secret. A stream never has more than `SPAN` ordinals above its watermark, so
a token never reaches 4 kB, whatever the order of acknowledgements.
"""

import base64
import binascii
import hmac
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

SPAN = 16_384
"""Most ordinals that may lie above the watermark: one bit each, 2 kB."""

_VERSION = b"\x01"
_SIGNATURE_BYTES = 16


class BadToken(ValueError):
    """The text is no token of this service: cut, changed, or signed with another secret."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The completed set of a stream: all closed ordinals below `watermark`, and `above`."""

    stream_id: str
    snapshot_hash: str
    watermark: int
    above: frozenset[int]
    draws: int

    def holds(self, ordinal: int) -> bool:
        """Whether the checkpoint has seen this ordinal (or it was withdrawn before)."""
        return ordinal < self.watermark or ordinal in self.above


def signed(secret: bytes, checkpoint: Checkpoint) -> str:
    """The token, as URL-safe text."""
    head = f"{checkpoint.stream_id}|{checkpoint.snapshot_hash}|{checkpoint.watermark}|{checkpoint.draws}|".encode()
    payload = _VERSION + head + zlib.compress(_bitmap(checkpoint.watermark, checkpoint.above), 9)
    return base64.urlsafe_b64encode(_signature(secret, payload) + payload).decode().rstrip("=")


def read(secret: bytes, token: str) -> Checkpoint:
    """The checkpoint of a token.

    Raises:
        BadToken: it was not made here.
    """
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadToken("the token is not base64") from error
    signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(secret, payload)) or payload[:1] != _VERSION:
        raise BadToken("the token's signature does not fit")
    stream_id, snapshot_hash, watermark, draws, packed = payload[1:].split(b"|", 4)
    return Checkpoint(
        stream_id.decode(),
        snapshot_hash.decode(),
        int(watermark),
        frozenset(_ordinals(int(watermark), zlib.decompress(packed))),
        int(draws),
    )


def ranges(ordinals: Iterable[int]) -> list[list[int]]:
    """Sorted ordinals as closed ranges `[first, last]`."""
    found: list[list[int]] = []
    for ordinal in sorted(ordinals):
        if found and found[-1][1] == ordinal - 1:
            found[-1][1] = ordinal
        else:
            found.append([ordinal, ordinal])
    return found


def _signature(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, b"stream-token:" + payload, "sha256")[:_SIGNATURE_BYTES]


def _bitmap(watermark: int, above: frozenset[int]) -> bytes:
    bits = 0
    for ordinal in above:
        bits |= 1 << (ordinal - watermark)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _ordinals(watermark: int, bitmap: bytes) -> Iterable[int]:
    bits = int.from_bytes(bitmap, "little")
    return (watermark + place for place in range(bits.bit_length()) if bits >> place & 1)
