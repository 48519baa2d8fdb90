"""ETags: a strong tag is the row's version. PATCH needs If-Match, so that of two editors the second is told."""

from service.errors import PreconditionFailed, PreconditionRequired


def tag_of(row_version: int) -> str:
    return f'"{row_version}"'


def require_match(if_match: str | None, row_version: int) -> None:
    """Refuse a change that was not made on what is stored now.

    Raises:
        PreconditionRequired: there is no If-Match.
        PreconditionFailed: it names another version.
    """
    if if_match is None:
        raise PreconditionRequired
    if tag_of(row_version) not in [tag.strip() for tag in if_match.split(",")]:
        raise PreconditionFailed
