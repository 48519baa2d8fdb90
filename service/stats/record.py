"""The statistics record `taskmill.stats/1`: read by the API, the dashboard and the command line.

Every number says how it was had, when and over what; what is not known is null with a reason, never 0. All numbers of
one record are of one read transaction.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from service.errors import NotFound
from service.stats.definitions import DEFINITIONS, Interval, rates, wilson
from service.store import counts
from service.store.jobs import clock
from service.store.session import ReadSession
from service.stream.difficulty import BUCKETS
from service.words import GateResult, JobStatus, OrdinalState, Split, TaskStatus
from verifiers.contract import Outcome

RECORD = "taskmill.stats/1"
MOST_STREAMS = 20
"""Streams whose coverage is counted: the newest ones."""

Json = dict[str, Any]


def build(db: ReadSession, *, holdout: bool = False, facet: str | None = None) -> Json:
    """The record, whole or one facet of it. Without `holdout` no count holds a holdout task.

    Raises:
        NotFound: there is no such facet.
    """
    if facet is not None and facet not in FACETS:
        raise NotFound(f"There is no facet {facet}; there are {', '.join(FACETS)}.")
    as_of = clock(db).isoformat()
    scope = {"data": "live", "snapshot": None, "filter": {"holdout": holdout}, "policy": None, "window": "all"}
    record: Json = {"record": RECORD, "as_of": as_of, "scope": scope, "unfolded": 0, "generator": _version()}
    for name in FACETS if facet is None else (facet,):
        started = time.perf_counter()
        block = FACETS[name](db, holdout)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        record[name] = {"method": "exact", "as_of": as_of, "scope": scope, "elapsed_ms": elapsed_ms} | block
    return record | {"definitions": dict(DEFINITIONS)}


def number(value: float | None, error: Json | None = None, *, method: str = "exact", reason: str | None = None) -> Json:
    """One number; `as_of` and `scope` are its block's. An unknown one has a reason."""
    found: Json = {"value": value, "method": method, "error": error}
    return found if value is not None else found | {"reason": reason or "nothing was measured"}


def share(part: int, whole: int, reason: str) -> Json:
    """A share with its Wilson interval; of nothing it is unknown."""
    interval = wilson(part, whole)
    if interval is None:
        return number(None, method="interval", reason=reason) | {"n": 0}
    return number(part / whole, _wilson(interval), method="interval") | {"n": whole}


def _tasks(db: ReadSession, holdout: bool) -> Json:
    by = {f"by_{name}": _numbers(counts.tasks_by(db, name, holdout=holdout)) for name in counts.TASK_DIMENSIONS}
    statuses = {str(status): by["by_status"].get(status, number(0)) for status in TaskStatus}
    total = sum(found["value"] for found in statuses.values())
    return {"total": number(total), **by, "by_status": statuses, "sealed": {Split.HOLDOUT: number(counts.sealed(db))}}


def _flow(db: ReadSession, holdout: bool) -> Json:
    """The funnel: what each gate let through, and why it refused the rest."""
    stages: dict[str, Json] = {}
    rejected: Counter[str] = Counter()
    for found in counts.gates(db, holdout=holdout):
        stage = stages.setdefault(found.gate, {"in": 0, "out": 0, "errors": 0, "refused": {}})
        stage["in"] += found.tasks
        if found.result == GateResult.FAIL:
            rejected[found.gate] += found.tasks
            stage["refused"][found.code] = stage["refused"].get(found.code, 0) + found.tasks
        elif found.result == GateResult.ERROR:
            stage["errors"] += found.tasks
        else:
            stage["out"] += found.tasks
    numbered = {
        gate: {
            "in": number(stage["in"]),
            "out": number(stage["out"]),
            "errors": number(stage["errors"]),
            "refused": _numbers(stage["refused"]),
        }
        for gate, stage in stages.items()
    }
    return {"stages": numbered, "rejected_by_gate": _numbers(rejected)}


def _attempts(db: ReadSession, holdout: bool) -> Json:
    by_outcome: Counter[str] = Counter()
    by_domain: dict[str, Counter[str]] = {}
    for found in counts.outcomes(db, holdout=holdout):
        by_outcome[found.outcome] += found.verdicts
        by_domain.setdefault(found.domain or "inline", Counter())[found.outcome] += found.verdicts
    return {
        "total": number(sum(by_outcome.values())),
        "by_outcome": _numbers({outcome: by_outcome[outcome] for outcome in Outcome if by_outcome[outcome]}),
        **_rates(by_outcome),
        "by_domain": {domain: _rates(found) for domain, found in sorted(by_domain.items())},
    }


def _rates(outcomes: Mapping[str, int]) -> Json:
    found = rates(outcomes)
    return {
        "valid": number(found.valid),
        "invalid": number(found.invalid),
        "pass_rate": share(found.verified, found.valid, "no valid attempt"),
        "infra_error_rate": share(found.infra, found.valid + found.infra, "no attempt"),
    }


def _signal(db: ReadSession, holdout: bool) -> Json:
    measured = counts.difficulty(db)
    lineages: dict[str, Json] = {}
    for found in measured:
        domains = lineages.setdefault(found.lineage, {})
        domains[found.domain] = {
            "groups": number(found.groups),
            "rollouts": number(found.rollouts),
            "zero_variance_share": share(found.zero_variance, found.groups, "no group with results"),
        }
    flat, groups = sum(found.zero_variance for found in measured), sum(found.groups for found in measured)
    streams = counts.streams(db, holdout=holdout)
    return {
        "groups": number(groups),
        "zero_variance_share": share(flat, groups, "no group with results"),
        "effective_share": share(groups - flat, groups, "no group with results"),
        "by_lineage": lineages,
        "streams": {found.name: _stream(db, found) for found in streams[-MOST_STREAMS:]},
        "streams_total": number(len(streams)),
    }


def _stream(db: ReadSession, found: counts.StreamCount) -> Json:
    domains: dict[str, Json] = {}
    reached = tasks = 0
    for row in counts.coverage(db, found.stream_id):
        domains.setdefault(row.domain, {})[str(row.served)] = number(row.tasks)
        tasks += row.tasks
        reached += row.tasks if row.served else 0
    return {
        "id": found.stream_id,
        "lineage": found.lineage,
        "ordinals": _numbers({str(state): found.states[state] for state in OrdinalState}),
        "stale": number(found.stale),
        "served_again": number(found.retried),
        "coverage": number(reached / tasks if tasks else None, reason="the snapshot is empty"),
        "served_times": domains,
    }


def _difficulty(db: ReadSession, holdout: bool) -> Json:
    lineages: dict[str, Json] = {}
    for found in counts.difficulty(db):
        lineages.setdefault(found.lineage, {})[found.domain] = {
            "tasks": number(sum(found.buckets.values())),
            "pass_rate_histogram": {
                "method": "histogram",
                "edges": [edge / BUCKETS for edge in range(BUCKETS + 1)],
                "counts": [found.buckets.get(str(bucket), 0) for bucket in range(BUCKETS)],
            },
        }
    return {"by_lineage": lineages}


def _jobs(db: ReadSession, holdout: bool) -> Json:
    by_kind = counts.jobs(db)
    total: Counter[str] = Counter()
    for found in by_kind.values():
        total.update(found)
    statuses = {str(status): number(total[status]) for status in JobStatus}
    return statuses | {"by_kind": {kind: _numbers(found) for kind, found in by_kind.items()}}


def _numbers(found: Mapping[str, int]) -> Json:
    return {str(name): number(count) for name, count in found.items()}


def _wilson(interval: Interval) -> Json:
    return {"kind": "wilson95", "lo": interval.lo, "hi": interval.hi}


def _version() -> str:
    try:
        return version("taskmill")
    except PackageNotFoundError:
        return "unpacked"


FACETS: Mapping[str, Callable[[ReadSession, bool], Json]] = {
    "tasks": _tasks,
    "flow": _flow,
    "attempts": _attempts,
    "signal": _signal,
    "difficulty": _difficulty,
    "jobs": _jobs,
}
