"""The policies: which tasks come next. Pure functions of a pool, the stream's counters and its seed.

`uniform` walks a seeded permutation of the share, a new one for each pass: a function of (seed, snapshot) alone.
`signal` prefers tasks whose next group is likely to teach something: buckets of seen tasks are weighted by
p(1−p)·(1−pⁿ−(1−p)ⁿ) and by how many tasks they hold, unseen tasks by what seen ones of the share turned out to be
worth; a part is always drawn uniformly and a part always explores.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from service.stream.contract import Cell, Draw, Drawn, Member, Pick, Policy, Pool
from service.stream.difficulty import bucket_values, unseen_value
from service.stream.permutation import permuted, units

CHUNK = 64
LONGEST_SEARCH = 8192
"""Places that one search for unseen tasks looks at."""

PRIOR_TASKS = 20.0
"""Seen tasks that it takes to outweigh what is assumed of unseen ones."""


class Found(NamedTuple):
    """A member and the place after it, where its walk goes on."""

    member: Member
    next_place: int


def walk(pool: Pool, key: str, start: int) -> Iterator[Found]:
    """The members from place `start` on, in growing chunks, for one whole pass at most."""
    place, end, size = start, start + pool.count, CHUNK
    while place < end:
        places = range(place, min(end, place + size))
        members = pool.members([permuted(key, pool.count, at) for at in places])
        yield from (Found(member, at + 1) for member, at in zip(members, places, strict=True))
        place, size = places.stop, min(size * 2, 4096)


def uniform(pool: Pool, draw: Draw) -> Drawn:
    """The next servable tasks of the permutation. A lease longer than a pass goes on into the next pass."""
    picks: list[Pick] = []
    walked = draw.walked
    while len(picks) < draw.n and pool.count:
        before = len(picks)
        for found in walk(pool, f"{draw.seed}:{draw.share}", walked):
            if found.member.servable:
                picks.append(Pick(found.member, "uniform", walked))
            walked = found.next_place
            if len(picks) == draw.n:
                break
        if len(picks) == before:
            break  # a whole pass without a servable task
    return Drawn(picks, walked, draw.explored)


def signal(pool: Pool, draw: Draw) -> Drawn:
    """Seen tasks by their worth, unseen ones to learn about, a part uniformly; what is held or fresh is left alone."""
    cells = pool.cells()
    choice = _Choice(pool, draw, cells)
    choice.walk_unseen(math.ceil(draw.n * draw.policy.explore_share))
    choice.walk_all(min(choice.missing, round(draw.n * draw.policy.uniform_share)))
    plan = _plan(cells, choice)
    for cell, quota in plan.seen.items():
        choice.take_seen(cell, quota)
    choice.walk_unseen(plan.unseen)
    for cell in sorted(plan.seen, key=lambda found: -plan.seen[found]):  # what one bucket lacked, another may have
        choice.take_seen(cell, choice.missing)
    choice.walk_unseen(choice.missing)
    for relaxed in (None, "cooldown", "held"):
        choice.walk_all(choice.missing, relaxed)
    return Drawn(choice.picks, choice.walked, choice.explored)


POLICIES: Mapping[str, Policy] = {"uniform": uniform, "signal": signal}


class _Plan(NamedTuple):
    seen: Mapping[Cell, int]
    unseen: int


def _plan(cells: Sequence[Cell], choice: "_Choice") -> _Plan:
    """How many of the groups still missing come from each bucket: systematic sampling over the weights."""
    worth = bucket_values(choice.draw.group_size)
    cap = 4 * choice.draw.n
    weights: list[tuple[Cell | None, float]] = [(cell, min(cell.tasks, cap) * worth[cell.bucket]) for cell in cells]
    seen = sum(cell.tasks for cell in cells)
    learnt = sum(cell.tasks * worth[cell.bucket] for cell in cells)
    assumed = (PRIOR_TASKS * unseen_value(choice.draw.group_size) + learnt) / (PRIOR_TASKS + seen)
    weights.append((None, min(choice.unseen, cap) * assumed))
    total, missing = sum(weight for _, weight in weights), choice.missing
    counts: dict[Cell | None, int] = {}
    if total > 0 and missing > 0:
        edge, at = 0.0, next(choice.chance)
        for cell, weight in weights:
            edge += weight / total * missing
            while at < edge:
                counts[cell] = counts.get(cell, 0) + 1
                at += 1
    return _Plan({cell: count for cell, count in counts.items() if cell is not None}, counts.get(None, 0))


class _Choice:
    """The picks of one draw: never a task twice, nothing held, nothing fresh, unless relaxed by name."""

    def __init__(self, pool: Pool, draw: Draw, cells: Sequence[Cell]) -> None:
        self.pool = pool
        self.draw = draw
        self.chance = units(f"{draw.seed}:{draw.share}:{draw.draws}")
        self.picks: list[Pick] = []
        self.walked, self.explored = draw.walked, draw.explored
        self.unseen = max(0, pool.count - sum(cell.tasks for cell in cells))
        self._taken = set(draw.taken)
        self._held = pool.held()
        self._barren = False

    @property
    def missing(self) -> int:
        return self.draw.n - len(self.picks)

    def walk_unseen(self, n: int) -> None:
        """Up to `n` tasks without evidence. Where few are left the walk is cut, and goes on with the next draw."""
        if n <= 0 or self.unseen == 0:
            return
        for found in islice(walk(self.pool, f"{self._key}:unseen", self.explored), LONGEST_SEARCH):
            self.explored = found.next_place
            if not found.member.seen and self._fits(found.member, None):
                n -= self._take(found.member, "unseen", None)
            if n == 0:
                return

    def walk_all(self, n: int, relaxed: str | None = None) -> None:
        """Up to `n` tasks of the share, whatever is known of them."""
        if n <= 0 or self._barren:
            return
        servable = False
        for found in walk(self.pool, self._key, self.walked):
            self.walked = found.next_place
            servable |= found.member.servable
            if self._fits(found.member, relaxed):
                n -= self._take(found.member, "uniform", relaxed)
            if n == 0:
                return
        self._barren = not servable

    def take_seen(self, cell: Cell, n: int) -> None:
        """Up to `n` tasks of one bucket, from a random place on."""
        if n <= 0:
            return
        for member in self.pool.seen(cell, next(self.chance), 2 * n + 8):
            if self._fits(member, None):
                n -= self._take(member, "weight", None)
            if n == 0:
                return

    @property
    def _key(self) -> str:
        return f"{self.draw.seed}:{self.draw.share}"

    def _fits(self, member: Member, relaxed: str | None) -> bool:
        if not member.servable or member.task_id in self._taken:
            return False
        if relaxed == "held":
            return True
        fresh = member.last_draw is not None and self.draw.draws - member.last_draw < self.draw.policy.cooldown
        used_up = member.served >= self.draw.policy.max_reuse
        return member.task_id not in self._held and (relaxed == "cooldown" or not (fresh or used_up))

    def _take(self, member: Member, arm: str, relaxed: str | None) -> int:
        self._taken.add(member.task_id)
        self.picks.append(Pick(member, arm, self.walked, relaxed))
        return 1
