"""The Idempotency-Key of a request, as endpoints use it.

with services.store.writing() as db:
    if again := once.replay(db):
        return again
    …
    return once.keep(db, 201, answer)
"""

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from service.api.dependencies import ServicesHandle, authenticate
from service.auth.principal import Principal
from service.store import idempotency
from service.store.session import WriteSession
from verifiers.canonical import canonical_json

JSON = "application/json"
LONG_LEASE_S = 900.0
"""A long route holds its key this long at most: longer than any judging, shorter than a trainer's patience."""


class Once:
    """The key of this request, or none: without one everything runs, and nothing is kept."""

    def __init__(self, key: idempotency.Key | None, ttl_s: float) -> None:
        self._key = key
        self._ttl_s = ttl_s

    def replay(self, db: WriteSession, lease_s: float = LONG_LEASE_S) -> Response | None:
        """The answer that this key already has, else None, and the key is ours.

        Raises:
            KeyReused, InFlight
        """
        if self._key is None:
            return None
        found = idempotency.begin(db, self._key, lease_s=lease_s, ttl_s=self._ttl_s)
        if found is None:
            return None
        return Response(found.body, found.status, {"Idempotency-Replayed": "true"}, JSON)

    def keep(self, db: WriteSession, status: int, answer: BaseModel, headers: dict[str, str] | None = None) -> Response:
        """Keep the answer in the effect's transaction, and be it."""
        body = answer.model_dump_json()
        if self._key is not None:
            idempotency.answer(db, self._key, status, body)
        return Response(body, status, headers, JSON)

    def forget(self, db: WriteSession) -> None:
        """The request failed without an effect: the key may be used again at once."""
        if self._key is not None:
            idempotency.forget(db, self._key)

    @property
    def named(self) -> bool:
        return self._key is not None


async def _once(
    request: Request,
    services: ServicesHandle,
    principal: Annotated[Principal, Depends(authenticate)],
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Once:
    key = None
    if idempotency_key is not None:
        try:
            body = canonical_json(await request.json())
        except ValueError:
            body = (await request.body()).decode("utf-8", "replace")  # the endpoint will refuse it; hash it as it is
        digest = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()
        key = idempotency.Key(principal.key_id, request.url.path, idempotency_key, digest)
    return Once(key, services.settings.idempotency_ttl_h * 3600)


OnceHandle = Annotated[Once, Depends(_once)]
