"""Carries frames between the trusted process and the candidate's, each in a box of its own, and hears the reports.

The two take strict turns: one frame of the trusted side to the candidate, one frame back. The candidate's frames are
never read here, only counted and passed on; the trusted side reads them inside its box. Reports come from the trusted
side alone.

Not covered: a backend with one box only; a verdict needs two at once, and its second box would never come.
"""

import ast
import functools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from socket import socket
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

from sandbox.contract import (
    Backend,
    Box,
    BoxLost,
    ExecRequest,
    ExecResult,
    Limits,
    Running,
    SandboxUnavailable,
)
from verifiers import asserts_candidate, asserts_codec, asserts_pytest, asserts_trusted, asserts_wire
from verifiers.contract import Context
from verifiers.parsing import parse_python

FRAME = asserts_wire.FRAME
MARGIN_S = 90.0
"""Both boxes hold their own wall limits; past this margin a silent one is given up."""
TRUSTED_EXTRA_S = 5.0
TRUSTED_MEMORY_MB = 512
PAIR_WITHIN_S = 600.0
_pairing = Lock()
"""One thread at a time holds one box and waits for another: two of them could wait for each other."""


class End(StrEnum):
    REPORTED = "reported"
    CANDIDATE_GONE = "candidate_gone"
    CANDIDATE_FLOODED = "candidate_flooded"
    TRUSTED_GONE = "trusted_gone"


class Told(NamedTuple):
    """What came of one submission: the reports, and how it ended. `result` is that of the side that ended first."""

    reports: Sequence[Mapping[str, Any]]
    end: End
    result: ExecResult | None
    answers: int
    """Frames that the candidate has sent."""
    image: str | None


class _Gone(Exception):
    """This side's channel is closed."""


class _Flood(Exception):
    """A frame over its size."""


@functools.cache
def driver(side: ModuleType) -> str:
    """One side's program: the codec, the wire and its own file, as one text."""
    parts = (asserts_codec, asserts_wire, asserts_pytest, side)
    return "\n\n".join(_without_own_imports(Path(str(part.__file__)).read_text(encoding="utf-8")) for part in parts)


def _without_own_imports(source: str) -> str:
    lines = source.splitlines()
    for node in parse_python(source).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("verifiers."):
            for i in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[i] = ""
    return "\n".join(lines)


def judge(code: str, task: Mapping[str, Any], limits: Limits, backend: Backend, context: Context) -> Told:
    """Run the assertions of `task` against `code`.

    Raises:
        SandboxError: the boxes could not be had, or one was lost and it cannot be laid to the candidate.
    """
    ours = replace(
        limits,
        wall_s=min(limits.wall_s + TRUSTED_EXTRA_S, 3600.0),
        cpu_s=None,
        memory_mb=max(limits.memory_mb, TRUSTED_MEMORY_MB),
        output_kb=1024,
    )
    with _pair(backend, limits, ours, context.image) as (theirs_box, ours_box):
        request = ExecRequest(
            "python",
            code,
            files=context.files,
            limits=limits,
            image=context.image,
            driver=driver(asserts_candidate),
        )
        with ExitStack() as started:
            candidate = theirs_box.start(request)
            started.callback(candidate.kill)
            trusted = ours_box.start(
                ExecRequest("python", "", limits=ours, image=context.image, driver=driver(asserts_trusted))
            )
            started.callback(trusted.kill)
            return _Exchange(candidate, trusted, time.monotonic() + 2 * ours.wall_s + MARGIN_S).run(task)


@contextmanager
def _pair(backend: Backend, theirs: Limits, ours: Limits, image: str) -> Iterator[tuple[Box, Box]]:
    with ExitStack() as boxes:
        if not _pairing.acquire(timeout=PAIR_WITHIN_S):
            raise SandboxUnavailable(f"no two boxes were free within {PAIR_WITHIN_S:g} s: raise sandbox_boxes")
        try:
            first = backend.create(theirs, image)
            boxes.callback(first.close)
            second = backend.create(ours, image)
            boxes.callback(second.close)
        finally:
            _pairing.release()
        yield first, second


class _Exchange:
    def __init__(self, candidate: Running, trusted: Running, deadline: float) -> None:
        self._candidate = candidate
        self._trusted = trusted
        self._deadline = deadline
        self._answers = 0
        self._reports: list[Mapping[str, Any]] = []

    def run(self, task: Mapping[str, Any]) -> Told:
        try:
            self._write(self._trusted, json.dumps(task).encode())
            while True:
                data = self._read(self._trusted)
                if data[:1] == b"R":
                    self._reports.append(json.loads(data[1:]))
                    if self._over():
                        return self._told(End.REPORTED, self._trusted.wait())
                    continue
                end = self._asked(data[1:])
                if end is not None:
                    return self._told(end, self._candidate.wait() if end is End.CANDIDATE_GONE else None)
        except (_Gone, _Flood):
            return self._told(End.TRUSTED_GONE, self._trusted.wait())

    def _over(self) -> bool:
        last = self._reports[-1]
        return bool(last.get("code", "ok") != "ok" or last["at"] == "end")

    def _asked(self, question: bytes) -> End | None:
        """Carry one frame over and one back; how the candidate failed to answer, if it did."""
        try:
            self._write(self._candidate, question)
            answer = self._read(self._candidate)
        except _Gone:
            return End.CANDIDATE_GONE
        except _Flood:
            return End.CANDIDATE_FLOODED
        self._answers += 1
        self._write(self._trusted, answer)
        return None

    def _told(self, end: End, result: ExecResult | None) -> Told:
        return Told(tuple(self._reports), end, result, self._answers, result.image if result else None)

    def _write(self, side: Running, data: bytes) -> None:
        channel = self._channel(side)
        try:
            channel.sendall(len(data).to_bytes(4, "big") + data)
        except TimeoutError as error:
            raise BoxLost("a box outlived its limits") from error
        except OSError as error:
            raise _Gone from error

    def _read(self, side: Running) -> bytes:
        length = int.from_bytes(self._exactly(side, 4), "big")
        if length > FRAME:
            raise _Flood
        return self._exactly(side, length)

    def _exactly(self, side: Running, count: int) -> bytes:
        channel = self._channel(side)
        found = bytearray()
        while len(found) < count:
            try:
                data = channel.recv(min(count - len(found), 1 << 20))
            except TimeoutError as error:
                raise BoxLost("a box outlived its limits") from error
            except OSError as error:
                raise _Gone from error
            if not data:
                raise _Gone
            found += data
        return bytes(found)

    def _channel(self, side: Running) -> socket:
        if side.channel is None:
            raise BoxLost("a driver was started without its channel")
        left = self._deadline - time.monotonic()
        with suppress(OSError):
            side.channel.settimeout(max(left, 0.01))
        return side.channel
