"""The jobs `factory.gate` (tasks by id or by filter) and `factory.regate` (active tasks whose receipts are void)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from factory.contract import Subject
from factory.gates.ladder import ORDER, Climb, climb, columns, count
from factory.runner import JobFailed, Judging, Outage, Progress, Step, Steps, Work
from service.store import gating
from service.store.gating import Settled
from service.store.session import ReadSession, WriteSession

BATCH = 100
FILTERS = frozenset(("status", "domain", "generator", "verifier"))


def gate(work: Work) -> Steps:
    """Gate the tasks of `params`: `{task_ids: […]}` or `{filter: {status?, domain?, generator?, verifier?}}`.

    A gate that could not decide because of us hands the job back: it then goes on with the tasks that are undecided.
    """
    params = work.claim.params
    if "task_ids" in params:
        yield from _over(work, _by_id(params["task_ids"]))
    else:
        yield from _over(work, _by_filter(params.get("filter") or {}))
    return {"order": list(ORDER)}


def regate(work: Work) -> Steps:
    """Gate the active tasks whose receipts were made with an older gate or verifier."""
    yield from _over(work, lambda db, after: gating.stale_ids(db, after=after, limit=BATCH))
    return {"order": list(ORDER)}


Chooser = Callable[[ReadSession, str], list[str]]
"""The next ids of the job, after the last one that is done."""


def _by_id(ids: Any) -> Chooser:
    if not isinstance(ids, list) or not all(isinstance(task_id, str) for task_id in ids):
        raise JobFailed("bad_params", "task_ids must be a list of task ids")
    ordered = sorted(set(ids))
    return lambda _db, after: [task_id for task_id in ordered if task_id > after][:BATCH]


def _by_filter(given: Any) -> Chooser:
    if not isinstance(given, dict) or set(given) - FILTERS:
        raise JobFailed("bad_params", f"give task_ids, or a filter by {', '.join(sorted(FILTERS))}")
    words = {name: given.get(name) for name in FILTERS - {"status"}}
    statuses = given.get("status") or ()
    statuses = (statuses,) if isinstance(statuses, str) else statuses
    return lambda db, after: gating.ids_to_gate(db, after=after, limit=BATCH, statuses=statuses, **words)


def _over(work: Work, choose: Chooser) -> Iterator[Step]:
    """What an earlier attempt left undecided first, then batch after batch.

    Raises:
        Outage: gates could not decide because of us; what they did decide is written.
    """
    batches = _Batches(work)
    while waiting := batches.left[:BATCH]:
        batches.left = batches.left[BATCH:]
        yield batches.judged(waiting, batches.after)
        batches.stop_if_void()
    while True:
        with work.store.reading() as db:
            ids = choose(db, batches.after)
        if not ids:
            break
        yield batches.judged(ids, ids[-1])
        batches.stop_if_void()
    if batches.undecided:
        raise Outage(f"{len(batches.undecided)} tasks are undecided: {batches.reason}")


class _Batches:
    """Reads, judges with no session open, and writes receipts, statuses and the job's cursor together."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.after: str = work.claim.cursor.get("after", "")
        self.left: list[str] = list(work.claim.cursor.get("undecided", ()))
        self.undecided: list[str] = []
        self.reason = ""
        self._counts: Mapping[str, Any] = work.claim.counts
        self._all_void = False

    def judged(self, ids: Sequence[str], after: str) -> Step:
        with self._work.store.reading() as db:
            tasks = gating.bodies(db, ids)
        subjects = [Subject(task.candidate, task.content_hash, task.split, task.id, task.version) for task in tasks]
        climbs = climb(subjects, Judging(self._work)) if subjects else []
        again = [task.id for task, found in zip(tasks, climbs, strict=True) if found.retry]
        self._all_void = bool(tasks) and len(again) == len(tasks)
        self.reason = next((found.reason for found in climbs if found.retry), self.reason)
        self.undecided += again
        self.after = after
        settled = [_settled(subject, found) for subject, found in zip(subjects, climbs, strict=True)]
        self._counts = counts = count(self._counts, climbs)
        cursor = {"after": self.after, "undecided": [*self.undecided, *self.left]}
        actor = self._work.claim.actor

        def write(db: WriteSession) -> Progress:
            ends = gating.settle(db, settled, actor=actor)
            changed = dict(counts)
            for status in ends.values():
                changed[str(status)] = changed.get(str(status), 0) + 1
            self._counts = changed
            return Progress(cursor, changed)

        return write

    def stop_if_void(self) -> None:
        """Nothing at all could be decided: there is an outage, and more batches would only meet it again."""
        if self._all_void:
            raise Outage(self.reason)


def _settled(subject: Subject, found: Climb) -> Settled:
    candidate = subject.candidate
    receipts = [columns(receipt, subject) for receipt in found.receipts]
    assert subject.task_id is not None
    return Settled(
        subject.task_id,
        subject.version,
        candidate.task_type,
        candidate.verifier.name,
        found.decision,
        found.reason,
        receipts,
    )
