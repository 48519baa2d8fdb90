"""The verifiers there are: names, versions, schemas."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from service.api.dependencies import Reader, problems
from verifiers.registry import VERIFIERS

router = APIRouter(prefix="/verifiers", tags=["verify"])


class VerifierOut(BaseModel):
    """`cost`: µs in process, ms in a killable worker, box in the sandbox. Schemas are JSON Schema."""

    name: str
    version: str
    cost: str
    params_schema: dict[str, Any]
    reference_schema: dict[str, Any]


class VerifiersOut(BaseModel):
    items: list[VerifierOut]
    next: str | None


@router.get("", operation_id="verifiers_list", responses=problems())
def list_verifiers(caller: Reader) -> VerifiersOut:
    """Every verifier by name. What its params may be is public; what a reference holds never leaves a task."""
    items = [
        VerifierOut(
            name=name,
            version=verifier.version,
            cost=verifier.cost,
            params_schema=dict(verifier.params_schema),
            reference_schema=dict(verifier.reference_schema),
        )
        for name, verifier in sorted(VERIFIERS.items())
    ]
    return VerifiersOut(items=items, next=None)
