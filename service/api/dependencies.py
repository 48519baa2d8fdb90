"""What endpoints are given: the services, the caller with the scopes it needs, the problems they may answer.

Authentication has a short session of its own, closed before the endpoint starts (D12). Dependencies that touch no
database are `async def`, so that they cost no thread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from anyio import CapacityLimiter
from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sandbox.contract import Backend
from service.auth.keys import fingerprint, well_formed
from service.auth.last_used import LastUsed
from service.auth.principal import Principal
from service.errors import Forbidden, Problem, Unauthenticated
from service.settings import Settings
from service.store import keys
from service.store.paging import DEFAULT_LIMIT, MAX_LIMIT
from service.store.session import Store
from service.store.splits import SplitRule
from service.words import Scope
from verifiers.engine import Engine

_bearer = HTTPBearer(auto_error=False, bearerFormat="tm_…", description="A key made by `taskmill keys create`.")


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that endpoints use, made by the composition root."""

    settings: Settings
    store: Store
    engine: Engine
    sandbox: Backend
    judging: CapacityLimiter
    """Threads that wait for judging and programs; endpoints have others."""
    last_used: LastUsed

    @property
    def split_rule(self) -> SplitRule:
        settings = self.settings
        return SplitRule(settings.secret_bytes, settings.split_holdout_share, settings.split_eval_share)


async def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


async def _store(services: Annotated[Services, Depends(_services)]) -> Store:
    return services.store


ServicesHandle = Annotated[Services, Depends(_services)]
StoreHandle = Annotated[Store, Depends(_store)]
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Items of a page.")]
PAGE = DEFAULT_LIMIT


def authenticate(services: ServicesHandle, credentials: Credentials) -> Principal:
    """The principal of the request's key."""
    if credentials is None or not well_formed(credentials.credentials):
        raise Unauthenticated
    token_hmac = fingerprint(services.settings.secret_bytes, credentials.credentials)
    now = datetime.now(UTC)
    with services.store.reading() as db:
        row = keys.find(db, token_hmac)
        if row is None:
            raise Unauthenticated
        principal = Principal(row.id, row.name, frozenset(row.scopes))
        if keys.needs_touch(row, now):
            services.last_used.note(principal.key_id, now)
    return principal


def needs(*scopes: Scope) -> Callable[..., Principal]:
    """A dependency that answers the caller when its key has all these scopes."""

    async def checked(principal: Annotated[Principal, Depends(authenticate)]) -> Principal:
        missing = [scope for scope in scopes if not principal.may(scope)]
        if missing:
            raise Forbidden(f"this request needs the scope {' and '.join(missing)}")
        return principal

    return checked  # type: ignore[return-value]  # FastAPI awaits it


def problems(*classes: type[Problem]) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route: each status with the codes it may carry."""
    found: dict[int | str, dict[str, Any]] = {}
    everything: tuple[type[Problem], ...] = (Unauthenticated, Forbidden, *classes)
    for item in everything:
        codes = found.setdefault(item.status, {"description": "", "content": {"application/problem+json": {}}})
        codes["description"] = f"{codes['description']}, `{item.code}`".lstrip(", ")
    return found


Reader = Annotated[Principal, Depends(needs(Scope.TASKS_READ))]
Submitter = Annotated[Principal, Depends(needs(Scope.TASKS_WRITE))]
Curator = Annotated[Principal, Depends(needs(Scope.CURATE))]
Judge = Annotated[Principal, Depends(needs(Scope.VERIFY))]
Executor = Annotated[Principal, Depends(needs(Scope.EXECUTE))]
Trainer = Annotated[Principal, Depends(needs(Scope.TRAIN))]
Analyst = Annotated[Principal, Depends(needs(Scope.ANALYSE))]
Admin = Annotated[Principal, Depends(needs(Scope.ADMIN))]
