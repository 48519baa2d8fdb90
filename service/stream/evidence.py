"""Evidence into difficulty: the one place that moves a posterior. Only tasks of split train are moved, and only by
results of their newest version; our own failures have no reward and never come here.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from service.store import difficulty as rows
from service.store.difficulty import DifficultyRecord, Identity
from service.store.session import ReadSession, WriteSession
from service.stream.difficulty import Posterior, informative, updated
from service.words import Split


class Sample(NamedTuple):
    """One valid rollout: its reward and the policy version that made it."""

    reward: float
    policy_version: int | None


class Group(NamedTuple):
    """A whole group, for the counters: the rewards of its valid rollouts, and the stream's draw counter."""

    rewards: Sequence[float]
    draws: int


class Evidence(NamedTuple):
    """What is new about one task version: samples not counted before, groups not counted before."""

    task_id: str
    task_version: int
    samples: Sequence[Sample] = ()
    groups: Sequence[Group] = ()


def train_tasks(db: ReadSession, evidence: Sequence[Evidence]) -> Mapping[str, Identity]:
    """The tasks that this evidence may move."""
    found = rows.identities(db, {item.task_id for item in evidence})
    wanted = {(item.task_id, item.task_version) for item in evidence}
    return {
        task_id: identity
        for task_id, identity in found.items()
        if identity.split == Split.TRAIN and (task_id, identity.version) in wanted
    }


def apply(db: WriteSession, lineage: str, evidence: Sequence[Evidence], newest: int | None, now: datetime) -> None:
    """Move the difficulty of these tasks for one lineage. `newest` is the lineage's newest policy version, if known."""
    tasks = train_tasks(db, evidence)
    kept = [item for item in evidence if item.task_id in tasks and tasks[item.task_id].version == item.task_version]
    if not kept:
        return
    by_task: defaultdict[str, list[Evidence]] = defaultdict(list)
    for item in kept:
        by_task[item.task_id].append(item)
    rows.reserve(db, [_fresh(lineage, task_id, tasks[task_id], now) for task_id in by_task])
    before = rows.some(db, lineage, by_task, lock=True)
    changed = []
    for task_id, items in sorted(by_task.items()):
        record = before[task_id]
        if record.task_version != tasks[task_id].version:
            record = _fresh(lineage, task_id, tasks[task_id], now)  # a new version starts unseen
        for item in items:
            record = _moved(record, item, newest)
        changed.append(replace(record, updated_at=now))
    rows.write(db, changed)


def _moved(record: DifficultyRecord, item: Evidence, newest: int | None) -> DifficultyRecord:
    posterior = Posterior(record.alpha, record.beta, record.last_policy_version)
    by_version: defaultdict[int | None, list[float]] = defaultdict(list)
    for sample in item.samples:
        by_version[sample.policy_version].append(sample.reward)
    for version, rewards in by_version.items():
        posterior = updated(posterior, rewards, version, newest)
    flat = sum(len(group.rewards) > 1 and not informative(group.rewards) for group in item.groups)
    return replace(
        record,
        alpha=posterior.alpha,
        beta=posterior.beta,
        bucket=posterior.bucket,
        last_policy_version=posterior.version,
        rollouts=record.rollouts + len(item.samples),
        visits=record.visits + len(item.groups),
        served=record.served + len(item.groups),
        zero_variance=record.zero_variance + flat,
        last_draw=max([group.draws for group in item.groups], default=record.last_draw),
    )


def _fresh(lineage: str, task_id: str, task: Identity, now: datetime) -> DifficultyRecord:
    start = Posterior()
    return DifficultyRecord(
        lineage=lineage,
        task_id=task_id,
        task_version=task.version,
        domain=task.domain,
        bucket=start.bucket,
        rkey=task.rkey,
        alpha=start.alpha,
        beta=start.beta,
        visits=0,
        rollouts=0,
        zero_variance=0,
        last_policy_version=None,
        served=0,
        last_draw=None,
        updated_at=now,
    )
