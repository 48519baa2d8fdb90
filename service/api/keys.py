"""API keys: make one (its secret is shown once), list, revoke."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, Field, field_validator

from service.api.dependencies import Admin, ServicesHandle, StoreHandle, problems
from service.api.ids import KeyId
from service.auth.issue import issue_key
from service.errors import NotFound, StoreBusy
from service.store import keys
from service.store.drafts import Strict
from service.store.tables import ApiKey
from service.words import Scope

router = APIRouter(prefix="/keys", tags=["keys"])


class KeyIn(Strict):
    name: Annotated[str, Field(min_length=1, max_length=120)]
    scopes: Annotated[list[Scope], Field(min_length=1)]
    expires_at: AwareDatetime | None = None

    @field_validator("expires_at")
    @classmethod
    def _later(cls, value: datetime | None) -> datetime | None:
        if value is not None and value <= datetime.now(UTC):
            raise ValueError("must lie in the future")
        return value


class KeyOut(BaseModel):
    id: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKeyOut(KeyOut):
    """`key` is shown here and never again."""

    key: str


class KeysOut(BaseModel):
    items: list[KeyOut]
    next: str | None


@router.post("", operation_id="keys_create", status_code=201, responses=problems(StoreBusy))
def create_key(body: KeyIn, caller: Admin, services: ServicesHandle) -> NewKeyOut:
    """Make a key. Only its hash is kept."""
    with services.store.writing() as db:
        made = issue_key(
            db,
            name=body.name,
            scopes=[str(scope) for scope in body.scopes],
            secret=services.settings.secret_bytes,
            expires_at=body.expires_at,
            actor=caller.key_id,
        )
        row = keys.by_id(db, made.key_id)
        assert row is not None
        return NewKeyOut.model_validate({"key": made.token, **_fields(row)})


@router.get("", operation_id="keys_list", responses=problems())
def list_keys(caller: Admin, store: StoreHandle) -> KeysOut:
    """Every key, without its secret."""
    with store.reading() as db:
        return KeysOut(items=[KeyOut.model_validate(_fields(row)) for row in keys.every(db)], next=None)


@router.delete("/{key_id}", operation_id="keys_revoke", status_code=204, responses=problems(NotFound, StoreBusy))
def revoke_key(key_id: KeyId, caller: Admin, store: StoreHandle) -> Response:
    """Revoke a key: from now on it opens nothing."""
    with store.writing() as db:
        if not keys.revoke(db, key_id, caller.key_id):
            raise NotFound(f"there is no key {key_id}")
        return Response(status_code=204)


def _fields(row: ApiKey) -> dict[str, object]:
    return {name: getattr(row, name) for name in KeyOut.model_fields}
