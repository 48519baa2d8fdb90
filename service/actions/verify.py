"""Verify: load in one transaction, judge with no session open, record in another.

Attempts are recorded with their verdicts and the evidence behind them; what they say of a task's difficulty is noted in
the same transaction (`service.stream.observe`), so that a verdict counts once or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.errors import FieldError, Invalid, NotFound, Problem
from service.store import attempts
from service.store.attempts import About, Judgeable, Recorded
from service.store.drafts import Environment, TaskLimits
from service.store.ids import parse_ref
from service.store.session import ReadSession, Store, WriteSession
from service.stream import observe
from verifiers.contract import Case, Verdict
from verifiers.engine import Engine
from verifiers.registry import check_task


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to verify: a stored task by `ref` or by id and version, or an `inline` one, and the response."""

    response: Any
    ref: str | None = None
    task_id: str | None = None
    version: int | None = None
    inline: Mapping[str, Any] | None = None
    policy: str | None = None
    policy_version: int | None = None
    run: str | None = None
    group_id: str | None = None
    tokens: int | None = None


Loaded = tuple[Case, About]


def load(db: ReadSession, asked: Sequence[Asked], *, holdout: bool) -> list[Loaded | Problem]:
    """What is needed to judge each request, or the problem with it; in order."""
    names: list[tuple[str, int | None] | Problem | None] = [_name(item) for item in asked]
    unversioned = [name[0] for name in names if isinstance(name, tuple) and name[1] is None]
    newest = attempts.newest_versions(db, unversioned) if unversioned else {}
    keys = {(name[0], name[1] or newest.get(name[0], 0)) for name in names if isinstance(name, tuple)}
    found = attempts.judgeable(db, sorted(keys), holdout=holdout) if keys else {}
    loaded: list[Loaded | Problem] = []
    for item, name in zip(asked, names, strict=True):
        if isinstance(name, Problem):
            loaded.append(name)
        elif name is None:
            loaded.append(_inline(item))
        else:
            task = found.get((name[0], name[1] or newest.get(name[0], 0)))
            loaded.append(_stored(item, task) if task else NotFound(f"there is no task {item.ref or item.task_id}"))
    return loaded


def judge(engine: Engine, loaded: Sequence[Loaded | Problem]) -> list[Verdict | Problem]:
    """Judge what was loaded; one that fails never loses the others."""
    verdicts = iter(engine.verify_many([item[0] for item in loaded if not isinstance(item, Problem)]))
    return [item if isinstance(item, Problem) else next(verdicts) for item in loaded]


def record(
    db: WriteSession, loaded: Sequence[Loaded | Problem], judged: Sequence[Verdict | Problem], *, actor: str
) -> list[Recorded | Problem]:
    """Write attempts and verdicts, and have the stream observe those of stored tasks."""
    pairs = [
        (item[1], verdict)
        for item, verdict in zip(loaded, judged, strict=True)
        if not isinstance(item, Problem) and not isinstance(verdict, Problem)
    ]
    rows = iter(written := attempts.record(db, pairs, actor=actor))
    observe.observe(db, [row.verdict.id for row in written if row.attempt.task_id is not None])
    return [item if isinstance(item, Problem) else next(rows) for item in loaded]


def verify(
    store: Store, engine: Engine, asked: Sequence[Asked], *, actor: str, holdout: bool
) -> list[Recorded | Problem]:
    """All three steps in the calling thread, for callers that are one already."""
    with store.reading() as db:
        loaded = load(db, asked, holdout=holdout)
    judged = judge(engine, loaded)
    with store.writing() as db:
        return record(db, loaded, judged, actor=actor)


def _name(item: Asked) -> tuple[str, int | None] | Problem | None:
    """Which stored task is meant; None for an inline one."""
    if item.inline is not None:
        return None
    if item.ref is not None:
        parsed = parse_ref(item.ref)
        return parsed or NotFound(f"{item.ref} is no reference to a task")
    assert item.task_id is not None
    return item.task_id, item.version


def _stored(item: Asked, task: Judgeable) -> Loaded:
    case = Case(
        verifier=task.verifier["name"],
        params=task.verifier["params"],
        reference=task.reference,
        response=item.response,
        limits=TaskLimits(**task.limits).for_sandbox(),
        image=task.environment["image"],
        files=task.environment["files"],
    )
    return case, _about(item, task)


def _inline(item: Asked) -> Loaded | Problem:
    inline = item.inline
    assert inline is not None
    verifier, reference = inline["verifier"], inline["reference"]
    faults = check_task(verifier["name"], verifier["params"], reference)
    if any(fault.code == "unknown_verifier" for fault in faults):
        return Invalid("The task's verifier does not exist.", errors=[_in_task(FieldError(*fault)) for fault in faults])
    environment = Environment(**inline["environment"])
    case = Case(
        verifier=verifier["name"],
        params=verifier["params"],
        reference=reference,
        response=item.response,
        limits=TaskLimits(**inline["limits"]).for_sandbox(),
        image=environment.image,
        files=environment.files,
    )
    return case, _about(item, None)


def _in_task(error: FieldError) -> FieldError:
    return error._replace(pointer=f"/task{error.pointer}")


def _about(item: Asked, task: Judgeable | None) -> About:
    return About(
        task=task,
        inline_task=item.inline,
        response=item.response,
        policy=item.policy,
        policy_version=item.policy_version,
        run_id=item.run,
        group_id=item.group_id,
        tokens=item.tokens,
    )
