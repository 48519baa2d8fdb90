"""P5: a trainer killed anywhere and restored skips nothing and trains nothing twice."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from service.store.session import Store
from service.store.streams import StreamRecord
from tests.service.stream.made import make_stream
from tests.service.stream.test_lease import complete, lease, restore, states, token

AddTasks = Callable[..., list[str]]
BATCH, EVERY = 3, 2


class Killed(Exception):
    """The process ends here."""


@dataclass
class Saved:
    """What a checkpoint holds: the weights (the groups they have seen), those not acknowledged yet, the token."""

    weights: list[int] = field(default_factory=list)
    unacknowledged: set[int] = field(default_factory=set)
    token: str | None = None


class Trainer:
    """The protocol of a trainer, one crash point between any two effects."""

    def __init__(
        self, store: Store, stream: StreamRecord, disk: list[Saved], crash: Callable[[], None], name: str
    ) -> None:
        self.store, self.stream, self.disk, self.crash, self.name = store, stream, disk, crash, name
        self.weights: list[int] = []
        self.unacknowledged: dict[int, object] = {}
        self.seen_before: set[int] = set()

    def start(self) -> None:
        saved = self.disk[-1]
        self.weights = list(saved.weights)
        self.seen_before = set(saved.unacknowledged)
        restore(self.store, self.stream, saved.token or token(self.store, self.stream), self.name)
        self.crash()

    def step(self) -> None:
        leased = lease(self.store, self.stream, BATCH, consumer=self.name)
        self.crash()
        for item in leased.items:
            if item.ordinal not in self.seen_before:
                self.weights.append(item.ordinal)
            self.unacknowledged[item.ordinal] = leased
        self.crash()

    def checkpoint(self) -> None:
        text = token(self.store, self.stream)
        self.crash()
        self.disk.append(Saved(list(self.weights), {*self.unacknowledged}, text))
        self.crash()
        for ordinal, leased in self.unacknowledged.items():
            complete(self.store, leased, [ordinal])  # type: ignore[arg-type]
            self.crash()
        self.unacknowledged = {}
        self.seen_before = set()


def crashes(dice: random.Random) -> Iterator[int]:
    while True:
        yield dice.randint(1, 25)


@pytest.mark.parametrize("kind", ["uniform", "signal"])
def test_kill_anywhere_and_restore(store: Store, tasks: AddTasks, kind: str) -> None:
    """Hundreds of random points: after every restart the weights hold each ordinal once, and in the end all of them."""
    sqlite = store.engine.dialect.name == "sqlite"
    kills, dice = (120 if sqlite else 30), random.Random(f"{kind}-7")
    tasks({"a": 30, "b": 20})
    stream = make_stream(store, domains={"a": 2, "b": 1}, policy={"kind": kind})
    disk, countdown, killed = [Saved()], crashes(dice), 0
    left = next(countdown)

    def crash() -> None:
        nonlocal left, killed
        left -= 1
        if left == 0 and killed < kills:
            left, killed = next(countdown), killed + 1
            raise Killed

    while killed < kills or len(disk[-1].weights) < 60:
        trainer = Trainer(store, stream, disk, crash, f"trainer-{killed}")
        try:
            trainer.start()
            for _ in range(40):
                for _ in range(EVERY):
                    trainer.step()
                trainer.checkpoint()
        except Killed:
            continue
        finally:
            weights = disk[-1].weights
            assert len(set(weights)) == len(weights), "trained twice"
    weights = sorted(disk[-1].weights)
    assert weights == list(range(len(weights))), "skipped"
    done = {ordinal for ordinal, state in states(store, stream).items() if state == "completed"}
    assert done >= set(weights) - set(disk[-1].unacknowledged)
