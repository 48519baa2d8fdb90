"""`GET /problems/<code>`: what a problem's `type` leads to."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from service.errors import NotFound
from service.problem_details import every_problem

router = APIRouter(include_in_schema=False)


@router.get("/problems/{code}")
async def problem_page(code: str) -> PlainTextResponse:
    """What the code means and what to do about it."""
    found = every_problem().get(code)
    if found is None:
        raise NotFound(f"there is no problem {code}")
    return PlainTextResponse(f"{code} ({found.status}): {found.title}\n\n{found.__doc__}\n")
