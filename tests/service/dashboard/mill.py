"""A mill with work in it: tasks in every status, receipts, attempts, runs, jobs and a worker."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from service.store import attempts, gating, jobs, runs, workers
from service.store.admission import admit, prepare
from service.store.drafts import CandidateDraft
from service.store.gating import Settled
from service.store.required_gates import GATE_VERSIONS
from service.store.session import Store
from service.store.splits import SplitRule
from service.words import JobStatus, RunStatus, TaskStatus
from verifiers.contract import Cost, Outcome, Verdict

RULE = SplitRule(b"s" * 32, 0.0, 0.0)
FAMILIES = ("math.arithmetic", "math.modular", "math.comparison", "text.reversal", "text.counting", "code.sorting")
HOSTILE = '<script>alert("x")</script>\u202egnitset\u2066 \u200b& <b onmouseover="x()">bold</b>'
HOLDOUT_WORDS = "the sealed question of the holdout"


def draft(domain: str, text: str, answer: str, **fields: Any) -> CandidateDraft:
    """A task of the `exact` verifier, as a generator would make it."""
    return CandidateDraft.model_validate(
        {
            "domain": domain,
            "prompt": [{"role": "user", "content": text}],
            "verifier": {"name": "exact"},
            "reference": {"answer": answer},
            "source": {"uri": "pkg:pypi/more-itertools@11.2.1", "licence": "MIT", "span": "recipes.py L10-L42"},
            "features": {"digits": len(answer)},
            "tags": ["demo"],
        }
        | fields
    )


def fill(store: Store, *, tasks: int = 60, seed: int = 1) -> list[str]:
    """Admit tasks of six families, gate most of them; the ids, in order."""
    draw = random.Random(seed)
    drafts = [_arithmetic(FAMILIES[index % len(FAMILIES)], index, draw) for index in range(tasks)]
    with store.writing() as db:
        ids = [one.task_id for one in admit(db, [prepare(one) for one in drafts], actor="cli", rule=RULE)]
    decisions = [_decision(index) for index in range(tasks)]
    with store.writing() as db:
        settled = [_settled(task_id, *found) for task_id, found in zip(ids, decisions, strict=True) if found]
        gating.settle(db, settled, actor="worker")
    return ids


def add(store: Store, one: CandidateDraft) -> str:
    """Admit one task; its split is the one that the draft names."""
    with store.writing() as db:
        return admit(db, [prepare(one)], actor="cli", rule=RULE, may_split=True)[0].task_id


def work(store: Store) -> dict[str, str]:
    """Jobs in every status, and a worker; ids by status."""
    found = {}
    with store.writing() as db:
        found["queued"] = jobs.file(db, "factory.gate", {"task_ids": []}, actor="cli")
        for name in ("running", "done", "failed"):
            found[name] = jobs.file(db, "factory.generate", {"family": name, "n": 500}, actor="cli", priority=-1)
        workers.seen(db, "host-a:4711", {"done": 12, "failed": 1})
    with store.writing() as db:
        claims = {
            name: jobs.claim(db, found[name], worker="host-a:4711", lease_s=60)
            for name in ("running", "done", "failed")
        }
        first = {"in": 500, "pass": 490, "fail": 10, "error": 0, "seconds": 0.2}
        counts = {"candidates": 500, "active": 431, "G0": first, "G1": first | {"in": 490, "pass": 431, "fail": 59}}
        running, done, failed = (claim for claim in claims.values() if claim)
        jobs.step(db, running.id, running.token, cursor={"at": 210}, counts=counts, progress=0.42)
        jobs.finish(db, done.id, done.token, result={"made": 431}, counts=counts, status=JobStatus.DONE)
        jobs.fail(db, failed.id, failed.token, code="bad_params", detail=f"no family {HOSTILE}")
    return found


def _arithmetic(domain: str, index: int, draw: random.Random) -> CandidateDraft:
    first, second = draw.randint(10, 99), draw.randint(10, 99)
    texts = {
        "math.arithmetic": (f"What is {first} + {second}? (no. {index})", str(first + second)),
        "math.modular": (
            f"What is {first * second} mod {second - 3}? (no. {index})",
            str(first * second % (second - 3)),
        ),
        "math.comparison": (f"Which is larger, {first}.{index} or {second}.{index}?", str(max(first, second))),
        "text.reversal": (f"Reverse the word “mill{index}stone”.", f"mill{index}stone"[::-1]),
        "text.counting": (f"How many letters has “{'a' * (index + 3)}”?", str(index + 3)),
        "code.sorting": (f"Sort ascending: {draw.sample(range(100), 6)} (no. {index})", str(index)),
    }
    text, answer = texts[domain]
    origin = {
        "generator": f"procedural.{domain.partition('.')[2]}",
        "generator_version": "1",
        "seed": 7,
        "index": index,
    }
    return draft(domain, text, answer, origin=origin, task_type="procedural")


def _decision(index: int) -> tuple[TaskStatus | None, str] | None:
    if index % 11 == 7:
        return TaskStatus.REJECTED, ("G1", "G2", "G3")[index % 3]
    if index % 13 == 5:
        return None if index % 2 else (None, "G2")
    return TaskStatus.ACTIVE, ""


def _settled(task_id: str, decision: TaskStatus | None, failing: str) -> Settled:
    receipts: list[dict[str, Any]] = []
    for gate in GATE_VERSIONS:
        result = "pass" if gate != failing else "error" if decision is None else "fail"
        receipts.append(receipt(gate, result))
        if gate == failing:
            break
    reason = f"{failing} did not pass" if failing else "all gates passed"
    return Settled(task_id, 1, "procedural", "exact", decision, reason, receipts)


def receipt(gate: str, result: str) -> dict[str, Any]:
    """The columns of one receipt."""
    codes = {"pass": "ok", "fail": "null_accepted", "error": "sandbox_error"}
    details = {"pass": "", "fail": "an empty answer was accepted", "error": "no sandbox could be had"}
    return {
        "gate": gate,
        "gate_version": GATE_VERSIONS[gate],
        "result": result,
        "code": codes[result],
        "detail": details[result],
        "metric": 1.0 if result == "pass" else 0.0,
        "threshold": 1.0,
        "n_exec": 3,
        "seed": 0,
        "verifier": "exact",
        "verifier_version": "1",
        "image": None,
        "duration_ms": 12.5,
        "evidence": None,
    }


OUTCOMES = (Outcome.VERIFIED, Outcome.FAILED, Outcome.FORMAT_ERROR, Outcome.CANDIDATE_ERROR, Outcome.SANDBOX_ERROR)
REWARDS = {Outcome.VERIFIED: 1.0, Outcome.FORMAT_ERROR: -1.0, Outcome.SANDBOX_ERROR: None}


def train(store: Store, tasks: Sequence[str], *, steps: int = 24) -> list[str]:
    """Two runs with curves, the first still running, and groups of attempts at the tasks; the ids of the runs."""
    draw = random.Random(5)
    moment = datetime.now(UTC)
    with store.writing() as db:
        made = [
            runs.create(
                db, name=name, kind="train", policy="tiny", stream_id=None, config={"lr": 1e-3}, actor="cli", now=moment
            ).id
            for name in ("demo <grpo>", "demo sft")
        ]
    for run_id in made:
        post(store, run_id, _curves(steps, draw))
    post(store, made[1], {"sft/loss": [(steps, 0.4)]}, status="done")
    _attempt(store, tasks, made[0], draw)
    return made


def post(store: Store, run_id: str, points: Mapping[str, Sequence[tuple[int, float]]], status: str = "running") -> None:
    """Post points as a trainer does."""
    found = [runs.Point(step, name, value) for name, curve in points.items() for step, value in curve]
    with store.writing() as db:
        now = datetime.now(UTC)
        runs.add_points(db, run_id, found, now)
        last = max(point.step for point in found)
        runs.move(db, run_id, last_step=last, status=RunStatus(status), summary=None, now=now)


def _curves(steps: int, draw: random.Random) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for step in range(steps):
        passed = 0.15 + 0.55 * step / steps
        values = {
            "reward/mean": passed - 0.2 + draw.gauss(0, 0.03),
            "group/effective_share": 0.4 + 0.3 * step / steps,
            "outcome/verified_frac": passed,
            "outcome/format_error_frac": 0.15 * (1 - passed),
            "outcome/failed_frac": 0.84 * (1 - passed),
            "outcome/sandbox_error_frac": 0.01 * (1 - passed),
            "optim/loss": 2 - passed + draw.gauss(0, 0.05),
            "policy/entropy": 1.4 - step / steps,
            "perf/tokens_per_s": 8000 + draw.gauss(0, 200),
            "time/gen_s": 0.4 + 0.1 * draw.random(),
        }
        values |= {f"reward/{name}/mean": min(1.0, passed * (0.5 + 0.2 * i)) for i, name in enumerate(FAMILIES)}
        if step % 8 == 0:
            values |= {"eval/heldout/avg@4": passed - 0.05}
        for name, value in values.items():
            found.setdefault(name, []).append((step, value))
    return found


def _attempt(store: Store, tasks: Sequence[str], run_id: str, draw: random.Random) -> None:
    with store.reading() as db:
        found = attempts.judgeable(db, [(task_id, 1) for task_id in tasks[:12]], holdout=True)
    judged = []
    for number, task in enumerate(found.values()):
        for _ in range(4):
            outcome = draw.choices(OUTCOMES, weights=(45, 30, 14, 6, 5))[0]
            about = attempts.About(
                task, None, f"I think {number}. {HOSTILE}", "tiny", number, run_id, f"group-{number}", 12
            )
            judged.append((about, _verdict(outcome, number)))
    with store.writing() as db:
        attempts.record(db, judged, actor="cli")


def _verdict(outcome: Outcome, number: int) -> Verdict:
    return Verdict(
        outcome=outcome,
        reward=REWARDS.get(outcome, 0.0),
        process=None,
        code="ok" if outcome is Outcome.VERIFIED else "wrong",
        detail="compared as text",
        extracted=str(number),
        normal_form=None,
        tier=None,
        trust=None,
        verifier="exact",
        verifier_version="1",
        fingerprint="f" * 64,
        image=None,
        seed=0,
        cost=Cost(0.1, 1.5, 0.2),
    )
