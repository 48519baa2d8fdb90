"""Checkpoints and restores: the completed set of a trainer's checkpoint, and the stream brought back to it."""

from datetime import datetime

from service.errors import Conflict, FieldError, Invalid, SnapshotMismatch
from service.store import events, leases, ordinals, streams
from service.store.session import ReadSession, WriteSession
from service.stream.token import BadToken, Checkpoint, ranges, read, signed
from service.words import LeaseState


def checkpoint(db: ReadSession, stream_id: str, secret: bytes) -> str:
    """The token of a stream's completed set as it is now.

    Raises:
        NotFound: there is no such stream.
    """
    stream = streams.get(db, stream_id)
    watermark = ordinals.watermark(db, stream_id, stream.next_ordinal)
    above = frozenset(ordinals.completed_from(db, stream_id, watermark))
    return signed(secret, Checkpoint(stream_id, stream.snapshot_hash, watermark, above, stream.draws))


def restore(
    db: WriteSession, stream_id: str, token: str, *, consumer: str, secret: bytes, actor: str, now: datetime
) -> int:
    """Make the completed set equal to the token's and fence off whoever holds leases; how many ordinals are then open.

    Evidence on difficulty stays: the rollouts were real.

    Raises:
        NotFound: there is no such stream.
        Invalid: the token was not made here.
        SnapshotMismatch: the token is of another snapshot.
        Conflict: the token is of another stream, or knows of ordinals that this one has not.
    """
    seen = _read(token, secret)
    stream = streams.for_update(db, stream_id)
    if seen.snapshot_hash != stream.snapshot_hash:
        raise SnapshotMismatch(
            f"The token is of snapshot {seen.snapshot_hash}, the stream of {stream.snapshot_hash}.",
            token_snapshot=seen.snapshot_hash,
            stream_snapshot=stream.snapshot_hash,
        )
    if seen.stream_id != stream_id:
        raise Conflict(f"The token is of stream {seen.stream_id}.")
    if max(seen.above, default=seen.watermark - 1) >= stream.next_ordinal:
        raise Conflict("The token knows of ordinals that this stream has not: the store is older than the checkpoint.")
    leases.expire(db, stream_id, now)
    leases.end(db, [lease.id for lease in leases.open_ones(db, stream_id)], LeaseState.SUPERSEDED)
    reopened = ordinals.make_completed_equal(db, stream_id, seen.holds, seen.watermark)
    streams.take_over(db, stream_id, consumer=consumer, generation=stream.generation + 1)
    data = {"watermark": seen.watermark, "above": len(ranges(seen.above)), "reopened": reopened, "consumer": consumer}
    events.record(db, stream_id, "stream.restored", actor, data=data)
    return reopened


def _read(token: str, secret: bytes) -> Checkpoint:
    try:
        return read(secret, token)
    except BadToken as error:
        rule = "must be a token of GET /v1/streams/{id}/checkpoint of this service"
        raise Invalid("The token is not valid.", errors=[FieldError("/token", "bad_token", rule)]) from error
