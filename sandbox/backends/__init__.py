"""The backends, by name. Imports are inside: naming one does not load the others."""

from sandbox.contract import Backend

KINDS = ("local", "unisolated")


def make_backend(kind: str, boxes: int) -> Backend:
    """A backend for up to `boxes` programs at once. Nothing starts before the first box.

    There is no silent fall-back: where `local` cannot isolate, `create` raises `SandboxUnavailable` and says why;
    `unisolated` exists only for who names it, and its results carry that name.
    """
    if boxes < 1:
        raise ValueError(f"boxes must be at least 1, not {boxes}")
    if kind == "local":
        from sandbox.backends.local import LocalBackend

        return LocalBackend(boxes)
    if kind == "unisolated":
        from sandbox.backends.unisolated import UnisolatedBackend

        return UnisolatedBackend(boxes)
    raise ValueError(f"no sandbox backend is named {kind!r}; there are {', '.join(KINDS)}")
