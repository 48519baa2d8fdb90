"""A box of either backend: laying, compiling, running and collecting, one program after the other."""

import functools
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from sandbox import artefacts
from sandbox.backends._cell import Cell, Housing, ProgramNotFound
from sandbox.backends._cgroup import Usage
from sandbox.backends._started import StartedProgram
from sandbox.contract import (
    Artefact,
    BadRequest,
    BoxLost,
    ExecRequest,
    ExecResult,
    ExecStatus,
    Limits,
    SandboxUnavailable,
    UnsupportedLanguage,
)
from sandbox.languages import PROBE_ANSWER, Language, known
from sandbox.outcome import Observed, decide, evidence
from sandbox.paths import check_args, check_fetch, check_request, check_room
from sandbox.pump import Bounds, Ends, Pump, Seen
from sandbox.rlimits import rlimits

PROBE_LIMITS = Limits(wall_s=20, memory_mb=1024, processes=64)
COLLECT_WITHIN_S = 30.0
CLOSE_WITHIN_S = 10.0
"""From the kill of a box until the thread that served its program has seen it."""


@dataclass(frozen=True)
class Plan:
    """A checked request."""

    request: ExecRequest
    language: Language
    laid: dict[str, bytes]
    fetch: list[str]
    args: list[str]


class SupervisedBox:
    """One owner's box. Not for use by two threads at once, but for `close` and `Running.kill`."""

    def __init__(
        self,
        housing: Housing,
        limits: Limits,
        spawn: Callable[[Housing, Limits], Cell],
        offered: dict[str, bool],
        freed: Callable[["SupervisedBox", bool], None],
        queue_s: float,
        image: str,
    ) -> None:
        self._housing = housing
        self._limits = limits
        self._spawn = spawn
        self._offered = offered
        self._freed = freed
        self._queue_s = queue_s
        self._image = image
        self._fresh = True
        self._clean = True
        self._closed = False
        self._lock = threading.RLock()
        self._busy = threading.Lock()
        self._started: list[StartedProgram] = []
        started = time.monotonic()
        try:
            self._cell: Cell | None = spawn(housing, limits)
        except BaseException:
            housing.clear()
            raise
        self._start_s = time.monotonic() - started

    # ── the contract ──

    def start(self, request: ExecRequest) -> StartedProgram:
        plan = self._plan(request)
        self._offer(plan.language)
        serve = functools.partial(self._serve, plan)
        program = StartedProgram(serve, self.close, request.limits.wall_s, request.driver is not None)
        self._started.append(program)
        return program

    def run(self, request: ExecRequest) -> ExecResult:
        if request.driver is not None:
            return self.start(request).wait()
        plan = self._plan(request)
        self._offer(plan.language)
        return self._serve_here(plan)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            cell = self._cell
        try:
            if cell is not None:
                cell.kill()
            # The thread that serves a program still waits on the cell's descriptors: they are closed after it.
            served = self._busy.acquire(timeout=CLOSE_WITHIN_S)
            try:
                for program in self._started:
                    program.release()
                self._drop_cell()
                self._housing.clear()
            finally:
                if served:
                    self._busy.release()
        finally:
            self._freed(self, self._clean)

    @property
    def isolated(self) -> bool:
        return self._housing.isolated

    def enforced(self) -> dict[str, str]:
        """How each limit is held here."""
        return enforced(self._ready_cell(self._limits), self._housing)

    # ── one program ──

    def _plan(self, request: ExecRequest) -> Plan:
        language = known(request.language)
        if request.image != "python":
            raise UnsupportedLanguage(f"there is no image {request.image!r}; there is `python`")
        for name in ("memory_mb", "disk_mb", "processes"):
            if getattr(request.limits, name) > getattr(self._limits, name):
                most = getattr(self._limits, name)
                raise BadRequest(f"limits.{name}", f"is above the {most} that this box was made for")
        if request.driver is not None and language.name != "python":
            raise BadRequest("driver", "runs python only")
        laid = check_request(request, language.main)
        check_room(laid, request.limits)
        return Plan(request, language, laid, check_fetch(request.fetch), check_args(request.args))

    def _offer(self, language: Language) -> None:
        """Run the language's probe in this very box the first time it is asked for."""
        if language.name == "python" or self._offered.get(language.name):
            return
        if language.name not in self._offered:
            self._offered[language.name] = self._probe(language)
        if not self._offered[language.name]:
            names = ", ".join(sorted({"python", *(name for name, good in self._offered.items() if good)}))
            raise UnsupportedLanguage(f"{language.name} does not work here; {names} does")

    def _probe(self, language: Language) -> bool:
        probe = ExecRequest(language.name, language.probe, limits=self._within(PROBE_LIMITS))
        try:
            result = self._serve_here(self._plan(probe))
        except ProgramNotFound:
            return False
        if result.status == ExecStatus.OK and result.stdout == PROBE_ANSWER:
            return True
        if result.status in (ExecStatus.COMPILE_ERROR, ExecStatus.NONZERO_EXIT, ExecStatus.OK):
            return False
        # A limit says nothing about the language: the machine may be slow, or this box small.
        raise SandboxUnavailable(f"{language.name} could not be tried: {result.status} in a box of {self._limits}")

    def _within(self, limits: Limits) -> Limits:
        return replace(
            limits,
            memory_mb=min(limits.memory_mb, self._limits.memory_mb),
            disk_mb=min(limits.disk_mb, self._limits.disk_mb),
            processes=min(limits.processes, self._limits.processes),
        )

    def _serve_here(self, plan: Plan) -> ExecResult:
        stop = os.eventfd(0)
        try:
            return self._serve(plan, None, stop)
        finally:
            os.close(stop)

    def _serve(self, plan: Plan, channel: socket.socket | None, stop: int) -> ExecResult:
        """The result of one program; one at a time."""
        with self._busy:
            return self._serve_alone(plan, channel, stop)

    def _serve_alone(self, plan: Plan, channel: socket.socket | None, stop: int) -> ExecResult:
        """Lay, compile, run, collect."""
        asked = time.monotonic()
        cell = self._ready_cell(plan.request.limits)
        phases = {"queue": self._queue_s, "start": self._start_s}
        self._queue_s = self._start_s = 0.0
        try:
            self._lay(cell, plan)
            phases["start"] += time.monotonic() - asked
            stages = ["compile", "run"] if plan.language.compile else ["run"]
            for stage in stages:
                made = self._stage(cell, plan, stage, channel, stop, phases)
                if made.status != ExecStatus.OK:
                    break
            found = self._collect(cell, plan, phases)
        except OSError as error:
            self._drop_cell()
            raise BoxLost(f"the machine could not serve the box: {error}") from error
        except BaseException:
            self._drop_cell()
            raise
        return replace(made, artefacts=found, phases=dict(phases))

    def _ready_cell(self, limits: Limits) -> Cell:
        with self._lock:
            if self._closed:
                raise BoxLost("the box is closed")
            if self._cell is not None and (not self._cell.alive or self._cell.limits.disk_mb != limits.disk_mb):
                self._drop_cell()
            if self._cell is None:
                self._cell, self._fresh = self._spawn(self._housing, limits), True
            return self._cell

    def _drop_cell(self) -> None:
        with self._lock:
            if self._cell is not None:
                self._clean = self._cell.destroy() and self._clean
                self._cell = None

    def _lay(self, cell: Cell, plan: Plan) -> None:
        work = self._housing.work
        files = [(f"{work}/{path}", content, 0o644) for path, content in plan.laid.items()]
        if plan.request.driver is not None:
            files.append((f"{self._housing.run_folder}/driver.py", plan.request.driver.encode(), 0o444))
        cell.command({"do": "lay", "clean": not self._fresh, "files": files}, "laid")
        self._fresh = False

    def _stage(
        self,
        cell: Cell,
        plan: Plan,
        stage: str,
        channel: socket.socket | None,
        stop: int,
        phases: dict[str, float],
    ) -> ExecResult:
        limits, leaf = plan.request.limits, cell.leaf
        memory = _clamped(limits)
        if leaf is not None:
            leaf.limit(memory, limits.processes)
            leaf.reset_peak()
        before = leaf.usage() if leaf is not None else None
        ends, theirs = _pipes()
        try:
            fds = [*theirs, *([channel.fileno()] if channel is not None and stage == "run" else [])]
            cell.command(self._exec_command(plan, stage, memory, cell), "started", fds)
        except BaseException:
            for fd in (ends.stdin, ends.stdout, ends.stderr):
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
            if channel is not None and stage == "run":
                channel.close()
        gauge = (
            None
            if leaf is None or before is None
            else (lambda: (leaf.cpu_s() - before.cpu_s, leaf.processes_now() - 1))
        )
        bounds = Bounds(limits.wall_s, limits.cpu_seconds, limits.output_kb * 1024, gauge)
        stdin = plan.request.stdin.encode() if stage == "run" else b""
        seen = Pump(cell.control, cell.died, stop, cell.kill).run(ends, stdin, bounds)
        phases["run"] = phases.get("run", 0.0) + seen.wall_s
        phases["kill"] = phases.get("kill", 0.0) + seen.kill_s
        return self._result(cell, plan, stage, seen, before)

    def _exec_command(self, plan: Plan, stage: str, memory: int, cell: Cell) -> dict[str, object]:
        limits, housing = plan.request.limits, self._housing
        words = list(plan.language.compile) if stage == "compile" else [*plan.language.start, *plan.args]
        if plan.request.driver is not None:
            main = f"{housing.work}/{plan.language.main}"
            words = [*plan.language.start[:-1], f"{housing.run_folder}/driver.py", main, *plan.args]
        return {
            "do": "exec",
            "argv": housing.argv(words),
            "env": housing.environment(),
            "rlimits": rlimits(limits, measured=cell.leaf is None, own_user_namespace=housing.isolated),
            "limits": {"memory": memory, "processes": limits.processes, "cpu": limits.cpu_seconds},
        }

    def _collect(self, cell: Cell, plan: Plan, phases: dict[str, float]) -> list[Artefact]:
        started, found = time.monotonic(), []
        if plan.fetch and cell.alive:
            cell.control.send(artefacts.command(plan.fetch))
            while (event := cell.control.receive(COLLECT_WITHIN_S))["event"] == "artefact":
                found.append(artefacts.from_event(event))
            if event["event"] == "fault":
                raise BoxLost("the supervisor could not collect files")
        elif plan.fetch:
            found = [Artefact(path, 0, None, "the box is gone") for path in plan.fetch]
        phases["collect"] = time.monotonic() - started
        return found

    def _result(self, cell: Cell, plan: Plan, stage: str, seen: Seen, before: Usage | None) -> ExecResult:
        limits, report = plan.request.limits, seen.report or {}
        facts = _facts(limits, stage, seen, before, cell.leaf.usage() if cell.leaf is not None else None)
        observed = facts.observed
        if seen.lost and not seen.cause and not observed.out_of_memory:
            raise BoxLost(f"{seen.lost}. {cell.errors()}".strip())
        notes = evidence(observed)
        if _clamped(limits) < limits.memory_mb << 20:
            notes.append(f"memory limit clamped to the machine's {_clamped(limits) >> 20} MB")
        if report.get("reason"):
            notes.append(f"ended by the supervisor: {report['reason']}")
        return ExecResult(
            status=decide(observed),
            stage=stage,
            exit_code=observed.exit_code,
            signal=observed.signal,
            stdout=_text(seen.stdout, seen.stdout_truncated),
            stderr=_text(seen.stderr, seen.stderr_truncated),
            stdout_truncated=seen.stdout_truncated,
            stderr_truncated=seen.stderr_truncated,
            wall_s=seen.wall_s,
            cpu_s=facts.cpu_s,
            memory_mb=facts.peak_bytes / (1 << 20),
            processes=facts.processes,
            limits_enforced=enforced(cell, self._housing),
            artefacts=(),
            phases={},
            evidence=notes,
            backend=self._housing.name,
            image=self._image,
            retryable=False,
        )


class Facts(NamedTuple):
    """What the group or the supervisor measured of one program."""

    observed: Observed
    cpu_s: float
    peak_bytes: int
    processes: int


def _facts(limits: Limits, stage: str, seen: Seen, before: Usage | None, after: Usage | None) -> Facts:
    report = seen.report or {}
    status = report.get("status", -1)
    processes = max(seen.processes, report.get("processes", 0), 1)
    if before is not None and after is not None:
        cpu_s, peak = after.cpu_s - before.cpu_s, after.memory_peak
        out_of_memory, refused = after.out_of_memory > before.out_of_memory, after.forks_refused > before.forks_refused
        near = False
        processes = limits.processes if refused else processes
    else:
        cpu_s, peak, out_of_memory = report.get("cpu_s", 0.0), report.get("memory", 0), False
        refused, near = processes >= limits.processes, peak >= 0.9 * _clamped(limits)
    observed = Observed(
        raw=None if status == -1 else status,
        cause=seen.cause or report.get("reason", ""),
        cpu_over=cpu_s > limits.cpu_seconds,
        out_of_memory=out_of_memory,
        memory_nearly_used=near,
        fork_refused=refused,
        place_full=bool(report.get("full")),
        stage=stage,
    )
    return Facts(observed, cpu_s, peak, processes)


def enforced(cell: Cell, housing: Housing) -> dict[str, str]:
    group = cell.leaf.at.name if cell.leaf is not None else None
    return {
        "memory": group or "poll",
        "processes": group or ("rlimit" if housing.isolated else "poll"),
        "cpu": group or "poll",
        "disk": "tmpfs" if housing.isolated else "rlimit",
        "syscalls": housing.syscalls,
    }


def _clamped(limits: Limits) -> int:
    """Bytes; never more than the machine has: a limit that cannot be reached is none."""
    return min(limits.memory_mb << 20, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _pipes() -> tuple[Ends, tuple[int, int, int]]:
    stdin, feed = os.pipe()
    out, stdout = os.pipe()
    err, stderr = os.pipe()
    return Ends(feed, out, err), (stdin, stdout, stderr)


def _text(data: bytearray, truncated: bool) -> str:
    """UTF-8 with U+FFFD; a character that the cap has cut is left out."""
    import codecs

    return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(data), final=not truncated)
