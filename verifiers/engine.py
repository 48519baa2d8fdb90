"""Runs verifiers: checks the task first, then the response; picks where each verifier runs; makes the verdicts.

µs verifiers run in the calling thread. ms verifiers run in killable worker processes (`pool.py`), unless their `quick`
can settle the case in microseconds. box verifiers, and composites with dearer parts, run in a bounded set of threads
that wait for the sandbox. Anything that a verifier raises is ours: the verdict is void, and no other case of the batch
is touched.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from sandbox.contract import Backend, BadRequest, SandboxError
from verifiers import composer
from verifiers.contract import Case, Context, Cost, CostClass, Finding, Outcome, Verdict, Verifier
from verifiers.fingerprint import fingerprint
from verifiers.pool import Pool
from verifiers.registry import VERIFIERS, Fault, checked

EXTRACTED_MAX = 4_000
LONGEST_S = 7_200.0
"""No verdict takes longer: a case that waited this long for its turn is void."""

_DEAREST: tuple[CostClass, ...] = ("µs", "ms", "box", "model")


class _Task(NamedTuple):
    """A checked verifier, ready to judge: kept for the length of one call, since its key is an identity."""

    verifier: Verifier | None
    cost: CostClass
    fault: Fault | None
    params_hash: str
    reference_hash: str
    parts: tuple[str, ...]


class Engine:
    """Judges cases. Usable from any thread; `close` ends its workers and threads.

    `workers` bounds the worker processes, and the boxes that are in use at once.
    """

    def __init__(self, sandbox: Backend | None, workers: int) -> None:
        self._sandbox = sandbox
        self._pool = Pool(max(workers, 1))
        self._threads = ThreadPoolExecutor(max_workers=max(workers, 1), thread_name_prefix="tm-verify")

    def verify(self, case: Case) -> Verdict:
        """The verdict of one case. Never raises for anything in the case."""
        return self.verify_many((case,))[0]

    def verify_many(self, cases: Sequence[Case]) -> list[Verdict]:
        """The verdicts of many cases, in their order. One bad case never loses another."""
        known: dict[tuple[str, int, int], _Task] = {}
        verdicts: list[Verdict | None] = [None] * len(cases)
        threaded: list[tuple[int, Future[Verdict]]] = []
        pooled: list[tuple[int, Case, _Task]] = []
        for i, case in enumerate(cases):
            task = _task(case, known)
            if task.fault or task.cost == "µs":
                verdicts[i] = self._here(case, task)
            elif task.cost != "ms":
                threaded.append((i, self._threads.submit(self._here, case, task)))
            elif (verdict := self._quick(case, task)) is not None:
                verdicts[i] = verdict
            else:
                pooled.append((i, case, task))
        for (i, _, _), verdict in zip(pooled, self._in_pool(pooled), strict=True):
            verdicts[i] = verdict
        for i, future in threaded:
            verdicts[i] = future.result(timeout=LONGEST_S)
        return [verdict for verdict in verdicts if verdict is not None]

    def warm(self) -> None:
        """Begin to start the worker processes, so that the first case need not wait for them. Optional."""
        self._pool.warm()

    def close(self) -> None:
        """End every worker and thread. Idempotent."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._pool.close()

    def _part(self, case: Case) -> Verdict:
        """Judge one part of a composite in the thread that judges the whole."""
        task = _task(case, {})
        if task.fault or task.cost != "ms":
            return self._here(case, task)
        return self._quick(case, task) or self._in_pool([(0, case, task)])[0]

    def _here(self, case: Case, task: _Task) -> Verdict:
        if task.fault:
            finding = Finding(Outcome.VERIFIER_ERROR, task.fault.code, f"{task.fault.pointer} {task.fault.message}")
            return _verdict(case, task, finding, Cost())
        started, cpu = time.perf_counter(), time.thread_time()
        finding = self._found(case, task)
        cost = Cost(0.0, (time.perf_counter() - started) * 1e3, (time.thread_time() - cpu) * 1e3)
        return _verdict(case, task, finding, cost)

    def _found(self, case: Case, task: _Task) -> Finding:
        if task.verifier is None or (task.cost == "box" and self._sandbox is None and not task.parts):
            return Finding(Outcome.SANDBOX_ERROR, "sandbox", "no sandbox is set up")
        context = Context(self._sandbox, case.limits, case.image, case.files, case.seed, self._part)
        try:
            return task.verifier.verify(case.response, case.reference, case.params, context)
        except SandboxError as error:
            return Finding(Outcome.SANDBOX_ERROR, "sandbox", f"{type(error).__name__}: {error}"[:500])
        except BadRequest as error:
            return Finding(Outcome.VERIFIER_ERROR, "bad_params", str(error)[:500])
        except Exception as error:  # noqa: BLE001 the boundary: whatever a verifier raises is our fault, and void
            return Finding(Outcome.VERIFIER_ERROR, "crash", type(error).__name__)

    def _quick(self, case: Case, task: _Task) -> Verdict | None:
        """The verdict of an ms verifier where microseconds in the calling thread are enough."""
        quick = getattr(task.verifier, "quick", None)
        if quick is None:
            return None
        started, cpu = time.perf_counter(), time.thread_time()
        try:
            finding = quick(case.response, case.reference, case.params)
        except Exception as error:  # noqa: BLE001 the boundary, as in `_found`
            finding = Finding(Outcome.VERIFIER_ERROR, "crash", type(error).__name__)
        if finding is None:
            return None
        cost = Cost(0.0, (time.perf_counter() - started) * 1e3, (time.thread_time() - cpu) * 1e3)
        return _verdict(case, task, finding, cost)

    def _in_pool(self, pooled: Sequence[tuple[int, Case, _Task]]) -> list[Verdict]:
        if not pooled:
            return []
        answers = self._pool.run([case for _, case, _ in pooled])
        return [
            _verdict(case, task, answer.finding, answer.cost)
            for (_, case, task), answer in zip(pooled, answers, strict=True)
        ]


def _task(case: Case, known: dict[tuple[str, int, int], _Task]) -> _Task:
    """The checked verifier of a case; cases of one call that share params and reference share the check."""
    key = (case.verifier, id(case.params), id(case.reference))
    if (task := known.get(key)) is None:
        task = known[key] = _checked(case)
    return task


def _checked(case: Case) -> _Task:
    verifier = VERIFIERS.get(case.verifier)
    if verifier is None:
        fault = Fault("/verifier/name", "bad_params", "no such verifier")
        return _Task(None, "µs", fault, "", "", ())
    try:
        found = checked(case.verifier, case.params, case.reference)
    except Exception as error:  # noqa: BLE001 the boundary: a lint that raises is our fault, and costs only its case
        return _Task(verifier, "µs", Fault("/reference", "crash", type(error).__name__), "", "", ())
    parts = () if found.faults else _parts(case.params)
    cost = max((_cost(name) for name in parts), key=_DEAREST.index, default=verifier.cost)
    if parts and cost == "ms":
        cost = "box"  # the whole waits for its parts: in a thread, not in the caller's turn
    return _Task(verifier, cost, next(iter(found.faults), None), found.params_hash, found.reference_hash, parts)


def _cost(name: str) -> CostClass:
    return VERIFIERS[name].cost if name in VERIFIERS else "µs"


def _parts(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The verifiers inside a composite, at any depth."""
    found: list[str] = []
    parts = params.get("parts")
    for part in parts if isinstance(parts, Sequence) and not isinstance(parts, str) else ():
        if isinstance(part, Mapping) and isinstance(part.get("verifier"), str):
            inner = part.get("params")
            nested = _parts(inner) if isinstance(inner, Mapping) else ()
            found += nested or (part["verifier"],)
    return tuple(found)


def _verdict(case: Case, task: _Task, finding: Finding, cost: Cost) -> Verdict:
    extracted, image = finding.extracted, finding.image
    if extracted is not None and len(extracted) > EXTRACTED_MAX:
        extracted = extracted[:EXTRACTED_MAX]
    normal_form = finding.normal_form
    if normal_form is not None and len(normal_form) > EXTRACTED_MAX:
        normal_form = normal_form[:EXTRACTED_MAX]
    return Verdict(
        outcome=finding.outcome,
        reward=composer.reward(finding, case.params.get("rewards")),
        process=finding.process,
        code=finding.code,
        detail=finding.detail,
        extracted=extracted,
        normal_form=normal_form,
        tier=finding.tier,
        trust=finding.trust,
        verifier=case.verifier,
        verifier_version=task.verifier.version if task.verifier else "",
        fingerprint=fingerprint(case.verifier, task.params_hash, task.reference_hash, image, task.parts),
        image=image,
        seed=case.seed,
        cost=cost,
        evidence=finding.evidence,
    )
