"""The client of Taskmill: tasks, verdicts, streams and runs over HTTP, sync and async with one surface."""

from typing import TYPE_CHECKING, Any

from taskmill_client.client import Client
from taskmill_client.errors import ApiError, ConnectionLost, FieldError, TaskmillError, WaitTimeout
from taskmill_client.transport import Patience

if TYPE_CHECKING:
    from taskmill_client.async_client import AsyncClient

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "ConnectionLost",
    "FieldError",
    "Patience",
    "TaskmillError",
    "WaitTimeout",
]


def __getattr__(name: str) -> Any:
    # asyncio costs more to import than the rest of this package: only who asks for AsyncClient pays.
    if name == "AsyncClient":
        from taskmill_client.async_client import AsyncClient

        return AsyncClient
    raise AttributeError(name)
