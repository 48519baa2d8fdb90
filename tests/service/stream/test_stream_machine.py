"""The stream contract as a state machine: any interleaving of consumers, on both databases."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from service.errors import Conflict
from service.store import ordinals
from service.store.session import Store
from service.store.streams import StreamRecord
from service.stream import leasing
from service.stream.serving import Leased
from service.stream.token import read
from service.words import ShortReason
from tests.service.stream.made import NOW, make_stream, set_tasks
from tests.service.stream.test_lease import SECRET, complete, lease, restore, token

AddTasks = Callable[..., list[str]]
STEPS = {"sqlite": 160, "postgresql": 80}


@dataclass
class Held:
    """One lease as its holder knows it."""

    leased: Leased
    consumer: str
    generation: int
    ends: int
    ordinals: set[int] = field(default_factory=set)
    closed: bool = False
    done: dict[int, str] = field(default_factory=dict)


class Machine:
    """The service beside a model of it; `check` compares them after every step. Time is whole minutes."""

    def __init__(self, store: Store, stream: StreamRecord, task_ids: list[str], dice: random.Random) -> None:
        self.store, self.stream, self.dice, self.task_ids = store, stream, dice, task_ids
        self.minute = 0
        self.state: dict[int, str] = {}
        self.task: dict[int, str] = {}
        self.tries: dict[int, int] = {}
        self.held: list[Held] = []
        self.by: dict[int, Held] = {}
        self.tokens: list[tuple[str, frozenset[int]]] = []
        self.generation = 0
        self.owner: str | None = None
        self.last_generation: dict[str, int] = {}
        self.gone: set[str] = set()

    @property
    def now(self):  # type: ignore[no-untyped-def]
        return NOW + timedelta(minutes=self.minute)

    def live(self, held: Held) -> bool:
        return held.generation == self.generation and held.ends > self.minute

    def lease(self) -> None:
        n, consumer = self.dice.randint(1, 5), self.dice.choice("abcd")
        stale = consumer != self.owner and self.last_generation.get(consumer, self.generation) < self.generation
        if stale:
            with pytest.raises(Conflict) as caught:
                lease(self.store, self.stream, n, consumer=consumer, now=self.now)
            assert caught.value.code == "stale_consumer"
            return
        self.expire()
        leased = lease(self.store, self.stream, n, consumer=consumer, now=self.now)
        waiting = sorted(ordinal for ordinal, state in self.state.items() if state == "open")
        expected = []
        for ordinal in waiting:  # as far as the lease looked, groups of tasks that left are withdrawn
            if len(expected) == n:
                break
            if self.task[ordinal] in self.gone:
                self.state[ordinal] = "withdrawn"
            else:
                expected.append(ordinal)
        got = [item.ordinal for item in leased.items]
        assert got[: len(expected)] == expected, "what waited comes first, in its order"
        first_new = len(self.task)
        assert got[len(expected) :] == list(range(first_new, first_new + len(got) - len(expected))), "dense"
        assert leased.short == (len(got) < n)
        if leased.short:
            assert leased.reason == ShortReason.NO_SERVABLE_TASK
            assert len(self.gone) == len(self.task_ids), "short only when nothing is servable"
        for item in leased.items:
            assert self.task.setdefault(item.ordinal, item.task_id) == item.task_id, "an ordinal keeps its task"
            assert item.tries == self.tries.get(item.ordinal, 0) + 1
            self.tries[item.ordinal] = item.tries
            self.state[item.ordinal] = "leased"
        if leased.lease:
            self.last_generation[consumer] = self.generation
            ends = self.minute + int(leased.lease.ttl_s // 60)
            self.held.append(Held(leased, consumer, self.generation, ends, set(got)))

    def expire(self) -> None:
        for held in self.held:
            if held.generation == self.generation and held.ends <= self.minute and not held.closed:
                for ordinal in held.ordinals:
                    self.state[ordinal] = "open"
                held.ordinals.clear()

    def complete(self) -> None:
        if not self.held:
            return
        held = self.dice.choice(self.held[-6:])
        asked = [item.ordinal for item in held.leased.items if self.dice.random() < 0.7]
        bodies = [self.dice.choice("xxxy") for _ in asked]
        for ordinal, body in zip(asked, bodies, strict=True):
            self.complete_one(held, ordinal, body)

    def complete_one(self, held: Held, ordinal: int, body: str) -> None:
        settled = self.state.get(ordinal) == "completed" and self.by.get(ordinal) is held
        if not settled and not self.live(held) and not (held.closed and held.generation == self.generation):
            with pytest.raises(Conflict) as caught:
                complete(self.store, held.leased, [ordinal], body=body, now=self.now)
            expected = "lease_superseded" if held.generation < self.generation else "lease_expired"
            assert caught.value.code == expected
            return
        (result,) = complete(self.store, held.leased, [ordinal], body=body, now=self.now)
        if settled:
            assert result.status == ("already" if held.done[ordinal] == body else "problem")
        elif ordinal in held.ordinals:
            assert result.status == "completed"
            held.ordinals.discard(ordinal)
            held.done[ordinal] = body
            held.closed = not held.ordinals
            self.state[ordinal] = "completed"
            self.by[ordinal] = held
        else:
            assert result.status == "problem"

    def release(self) -> None:
        live = [held for held in self.held if self.live(held) and held.ordinals]
        if not live:
            return
        held = self.dice.choice(live)
        chosen = [ordinal for ordinal in sorted(held.ordinals) if self.dice.random() < 0.5]
        assert held.leased.lease
        with self.store.writing() as db:
            leasing.release(db, held.leased.lease.id, chosen, "preempted", actor="test", now=self.now)
        for ordinal in chosen:
            held.ordinals.discard(ordinal)
            self.state[ordinal] = "open"
        held.closed = not held.ordinals

    def extend(self) -> None:
        live = [held for held in self.held if self.live(held)]
        if live:
            held = self.dice.choice(live)
            assert held.leased.lease
            with self.store.writing() as db:
                leasing.extend(db, held.leased.lease.id, self.now)
            held.ends = max(held.ends, self.minute + int(held.leased.lease.ttl_s // 60))

    def wait(self) -> None:
        self.minute += self.dice.choice([1, 2, 2, 6])

    def save(self) -> None:
        text = token(self.store, self.stream)
        done = frozenset(ordinal for ordinal, state in self.state.items() if state == "completed")
        seen = read(SECRET, text)
        assert {o for o, s in self.state.items() if seen.holds(o) and s != "withdrawn"} == done
        self.tokens.append((text, done))

    def restore(self) -> None:
        if not self.tokens:
            return
        text, done = self.dice.choice(self.tokens[-3:])
        self.owner = self.dice.choice("abcd")
        reopened = restore(self.store, self.stream, text, self.owner)
        self.generation += 1
        for ordinal, state in self.state.items():
            if state != "withdrawn":
                if state != "completed" or ordinal not in done:
                    self.by.pop(ordinal, None)  # what a checkpoint alone knows of belongs to no lease
                self.state[ordinal] = "completed" if ordinal in done else "open"
        assert reopened == sum(state == "open" for state in self.state.values())

    def quarantine(self) -> None:
        task_id = self.dice.choice(self.task_ids)
        if len(self.gone) < len(self.task_ids) // 3 and task_id not in self.gone:
            self.gone.add(task_id)
            set_tasks(self.store, [task_id], status="quarantined")

    def check(self) -> None:
        with self.store.reading() as db:
            rows = ordinals.page(db, self.stream.id, None, -1, 10_000)
            mark = ordinals.watermark(db, self.stream.id, len(rows))
        assert [row.ordinal for row in rows] == list(range(len(self.task)))
        shown = {row.ordinal: str(row.state) for row in rows}
        overdue = {o for held in self.held if not self.live(held) for o in held.ordinals}
        for ordinal, state in self.state.items():
            assert shown[ordinal] in ({state, "open"} if ordinal in overdue else {state}), ordinal
        assert all(shown[ordinal] in {"completed", "withdrawn"} for ordinal in range(mark))
        holders = [o for held in self.held if self.live(held) for o in held.ordinals]
        assert len(holders) == len(set(holders)), "no ordinal is held twice"


MOVES = {
    "lease": 8, "complete": 8, "release": 2, "extend": 2, "wait": 3, "save": 2, "restore": 1, "quarantine": 1,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["uniform", "signal"])
def test_any_interleaving_keeps_the_contract(store: Store, tasks: AddTasks, kind: str, seed: int) -> None:
    """H39, section 14: 1 to 4 consumers, random moves; a failing seed tells the whole story again."""
    dice = random.Random(f"{kind}-{seed}")
    ids = tasks({"a": 14, "b": 10})
    stream = make_stream(store, domains={"a": 1, "b": 2}, policy={"kind": kind}, max_lag=0)
    machine = Machine(store, stream, ids, dice)
    for _ in range(STEPS[store.engine.dialect.name]):
        getattr(machine, dice.choices(list(MOVES), list(MOVES.values()))[0])()
        machine.check()
    assert len(machine.task) > 8
