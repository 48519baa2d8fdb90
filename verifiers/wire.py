"""Messages between the pool and its workers: a length, then JSON. Cases go out in chunks, findings come back singly."""

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sandbox.contract import Limits
from verifiers.contract import Case, Finding, Outcome

_LENGTH = struct.Struct(">I")


def send(link: socket.socket, message: Any) -> None:
    """Send one message.

    Raises:
        OSError: the other side is gone, or does not read.
        TypeError: the message holds something that is not JSON.
    """
    body = json.dumps(message).encode()
    link.sendall(_LENGTH.pack(len(body)) + body)


def receive(link: socket.socket) -> Any:
    """The next message.

    Raises:
        EOFError: the other side is gone.
        TimeoutError: the link's timeout passed.
    """
    (length,) = _LENGTH.unpack(_exactly(link, _LENGTH.size))
    return json.loads(_exactly(link, length))


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = link.recv(min(size - len(parts), 1 << 20))
        except (ConnectionError, BrokenPipeError) as error:
            raise EOFError("the link is gone") from error
        if not part:
            raise EOFError("the link is closed")
        parts += part
    return bytes(parts)


def encode_case(case: Case) -> bytes:
    """A case as JSON.

    Raises:
        TypeError, ValueError: it holds something that is not JSON.
    """
    return json.dumps({**_fields(case), "limits": asdict(case.limits)}, allow_nan=False).encode()


def send_cases(link: socket.socket, encoded: Sequence[bytes]) -> None:
    """Send a chunk of encoded cases.

    Raises:
        OSError: the other side is gone, or does not read.
    """
    body = b"[" + b",".join(encoded) + b"]"
    link.sendall(_LENGTH.pack(len(body)) + body)


def decode_case(data: Mapping[str, Any]) -> Case:
    """The case of `encode_case`."""
    return Case(**{**data, "limits": Limits(**data["limits"])})


def encode_finding(finding: Finding) -> list[Any]:
    """A finding as JSON."""
    return list(finding)


def decode_finding(data: list[Any]) -> Finding:
    """The finding of `encode_finding`."""
    return Finding(Outcome(data[0]), *data[1:])


def _fields(case: Case) -> dict[str, Any]:
    names = ("verifier", "params", "reference", "response", "image", "files", "seed")
    return {name: _plain(getattr(case, name)) for name in names}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
