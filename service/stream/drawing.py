"""The next new groups of a stream: turns between its shares, and in each share what its policy picks."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from service.store import difficulty as evidence
from service.store import ordinals, snapshots
from service.store.session import ReadSession
from service.store.snapshots import MemberRow, SnapshotRecord
from service.store.streams import StreamRecord
from service.stream.contract import EVERYTHING, Cell, Draw, Member, Pick, StreamRequest
from service.stream.difficulty import BUCKETS, expected_p_informative
from service.stream.sampler import POLICIES, PRIOR_TASKS
from service.stream.shares import Turns, turns


class NewGroup(NamedTuple):
    """One chosen task, with what is expected of its group and why it was chosen."""

    task_id: str
    version: int
    domain: str
    p: float
    p_informative: float
    why: Mapping[str, Any]


class NewGroups(NamedTuple):
    """What was drawn, the stream's `shares` after it, and whether a share had to lend its turn to another."""

    groups: Sequence[NewGroup]
    shares: Mapping[str, Mapping[str, float]]
    lent: bool


class SharePool:
    """One share of a stream's snapshot, read from the store: the `Pool` of its policy."""

    def __init__(self, db: ReadSession, stream: StreamRecord, share: str, snapshot: SnapshotRecord) -> None:
        self._db = db
        self._stream = stream
        self._domain = None if share == EVERYTHING else share
        inside = [place for domain, place in snapshot.domains.items() if share in {EVERYTHING, domain}]
        inside += [place for domain, place in snapshot.domains.items() if domain.startswith(f"{share}.")]
        self._first = min((place[0] for place in inside), default=0)
        self._end = max((place[1] for place in inside), default=0)

    @property
    def count(self) -> int:
        return self._end - self._first

    def members(self, places: Sequence[int]) -> Sequence[Member]:
        stream = self._stream
        positions = [self._first + place for place in places]
        return self._with_priors(
            snapshots.members(self._db, stream.snapshot_hash, stream.lineage, stream.split, positions)
        )

    def cells(self) -> Sequence[Cell]:
        return self._cells

    def seen(self, cell: Cell, start: float, limit: int) -> Sequence[Member]:
        stream = self._stream
        return self._with_priors(
            snapshots.bucket_members(
                self._db, stream.snapshot_hash, stream.lineage, stream.split, cell.domain, cell.bucket, start, limit
            )
        )

    def held(self) -> frozenset[str]:
        return ordinals.held_tasks(self._db, self._stream.id)

    @cached_property
    def _cells(self) -> Sequence[Cell]:
        return [Cell(*row) for row in evidence.bucket_counts(self._db, self._stream.lineage, self._domain)]

    @cached_property
    def _means(self) -> Mapping[str, float]:
        """The pass rate to expect of an unseen task of each exact domain: its seen ones, shrunk to one half."""
        total: defaultdict[str, float] = defaultdict(lambda: PRIOR_TASKS / 2)
        tasks: defaultdict[str, float] = defaultdict(lambda: PRIOR_TASKS)
        for cell in self._cells:
            total[cell.domain] += cell.tasks * (cell.bucket + 0.5) / BUCKETS
            tasks[cell.domain] += cell.tasks
        return {domain: total[domain] / tasks[domain] for domain in tasks}

    def _with_priors(self, rows: Sequence[MemberRow]) -> list[Member]:
        found = []
        for row in rows:
            mean = self._means.get(row.domain, 0.5)
            seen = row.alpha is not None and row.beta is not None
            alpha = row.alpha if row.alpha is not None else 2 * mean
            beta = row.beta if row.beta is not None else 2 * (1 - mean)
            found.append(
                Member(row.task_id, row.version, row.domain, row.servable, seen, alpha, beta, row.served, row.last_draw)
            )
        return found


class Drawing:
    """One lease's draw. `groups(n)` may be asked again with a smaller `n`: it starts from the same state."""

    def __init__(self, db: ReadSession, stream: StreamRecord, request: StreamRequest) -> None:
        snapshot = snapshots.get(db, stream.snapshot_hash)
        self._stream = stream
        self._request = request
        self._pools = {share: SharePool(db, stream, share, snapshot) for share in request.weights}

    def groups(self, n: int) -> NewGroups:
        """Up to `n` new groups. A share that has no more servable task lends its turns to the others."""
        walks = {share: Walk.of(self._stream.shares.get(share)) for share in self._pools}
        credit = {share: walk.credit for share, walk in walks.items()}
        weights = dict(self._request.weights)
        lenders: list[str] = []
        while True:
            lent = sum(len(walks[share].picks) for share in lenders)
            plan = turns(weights, credit, n - lent) if weights else Turns((), credit)
            for share, quota in sorted(Counter(plan.order).items()):
                self._draw(share, walks[share], quota)
                if len(walks[share].picks) < quota:
                    lenders.append(share)
                    del weights[share]
            if all(share in weights for share in plan.order):
                break
        groups = self._in_order([*plan.order, *(s for s in lenders for _ in walks[s].picks)], walks)
        for share, walk in walks.items():
            walk.credit = plan.credit[share]
        used = Counter(plan.order)
        shares = {share: walk.state(used[share], share in lenders) for share, walk in walks.items()}
        return NewGroups(groups, shares, bool(lenders))

    def _draw(self, share: str, walk: "Walk", quota: int) -> None:
        """Have the share's policy pick what is missing of its quota."""
        missing = quota - len(walk.picks)
        if missing <= 0:
            return
        stream = self._stream
        drawn = POLICIES[self._request.policy.kind](
            self._pools[share],
            Draw(
                n=missing,
                share=share,
                walked=walk.walked,
                explored=walk.explored,
                seed=stream.seed,
                draws=stream.draws,
                group_size=stream.group_size,
                policy=self._request.policy,
                taken=frozenset(pick.member.task_id for pick in walk.picks),
            ),
        )
        walk.picks += drawn.picks
        walk.walked, walk.explored = drawn.walked, drawn.explored

    def _in_order(self, order: Sequence[str], walks: Mapping[str, "Walk"]) -> list[NewGroup]:
        queues = {share: iter(walk.picks) for share, walk in walks.items()}
        total = sum(self._request.weights.values())
        return [
            _group(next(queues[share]), self._stream.group_size, self._request.policy.kind, share, weight / total)
            for share in order
            for weight in (self._request.weights[share],)
        ]


@dataclass
class Walk:
    """How far a share has come, and what this lease picked of it."""

    credit: float = 0.0
    walked: int = 0
    explored: int = 0
    picks: list[Pick] = field(default_factory=list)

    @classmethod
    def of(cls, state: Mapping[str, float] | None) -> "Walk":
        state = state or {}
        return cls(state.get("credit", 0.0), int(state.get("walked", 0)), int(state.get("explored", 0)))

    def state(self, used: int, lender: bool) -> dict[str, float]:
        """What the stream keeps. A pick that found no turn after all is not walked past."""
        spare = not lender and used < len(self.picks)
        walked = self.picks[used].before if spare else self.walked
        return {"credit": self.credit, "walked": walked, "explored": self.explored}


def _group(pick: Pick, n: int, policy: str, share: str, weight: float) -> NewGroup:
    member = pick.member
    why = {"policy": policy, "arm": pick.arm, "share": share, "share_weight": round(weight, 6)}
    if pick.relaxed:
        why["relaxed"] = pick.relaxed
    return NewGroup(
        member.task_id,
        member.version,
        member.domain,
        round(member.alpha / (member.alpha + member.beta), 6),
        round(expected_p_informative(member.alpha, member.beta, n), 6),
        why,
    )
