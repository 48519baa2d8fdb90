"""A stream, a judge and a source of tasks without a service: what the trainer's protocols ask, kept in one JSON file.

It keeps the service's promises that matter here: un-acknowledged ordinals come first and in order, a restore fences
older consumers off, the same content is judged once. Every operation is on disk before it returns.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.contract import Attribution, Completion, Group, Item, Superseded, Verdict
from trainer.judge import Answer
from trainer.models.characters import decode
from trainer.tasks import Gold, HeldOut


@dataclass(frozen=True)
class Toy:
    """One task: `rev 123=` and its answer."""

    prompt: str
    answer: str


def reversals(count: int, seed: int, lengths: tuple[int, int] = (2, 4)) -> list[Toy]:
    chooser, found = random.Random(seed), {}
    while len(found) < count:
        text = "".join(chooser.choices("0123456789", k=chooser.randint(*lengths)))
        found[f"rev {text}="] = text[::-1]
    return [Toy(prompt, answer) for prompt, answer in found.items()]


def _message(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


class FileStream:
    """`broken` outcomes: how many of the first judgements of each group come back without a reward."""

    def __init__(self, path: Path, tasks: Sequence[Toy], group_size: int, consumer: str, broken: int = 0) -> None:
        self.identity, self.snapshot = "str_offline", hashlib.sha256(repr(tasks).encode()).hexdigest()
        self._path, self._tasks, self._size, self._consumer, self._broken = path, tasks, group_size, consumer, broken
        if not path.exists():
            self._write({"ordinals": [], "generation": 0, "consumer": consumer, "verdicts": {}, "leases": 0})

    # --- the file

    def state(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self._path.read_text())
        return read

    def _write(self, state: dict[str, Any]) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(self._path)

    def _mine(self) -> dict[str, Any]:
        state = self.state()
        if state["consumer"] != self._consumer:
            raise Superseded("another consumer restored this stream")
        return state

    # --- TaskStream

    def lease(self, n: int, policy_version: int) -> list[Item]:
        state = self._mine()
        state["leases"] += 1
        rows = [row for row in state["ordinals"] if row["state"] == "open"][:n]
        while len(rows) < n:
            ordinal = len(state["ordinals"])
            rows.append({"ordinal": ordinal, "served": 0, "acks": 0})
            state["ordinals"].append(rows[-1])
        lease_id = f"lse_{state['leases']}"
        for row in rows:
            row |= {"state": "leased", "lease": lease_id, "served": row["served"] + 1}
        self._write(state)
        ordered = sorted(rows, key=lambda row: row["ordinal"])
        return [self._item(row["ordinal"], lease_id, row["served"]) for row in ordered]

    def _item(self, ordinal: int, lease_id: str, tries: int) -> Item:
        place = random.Random(ordinal).randrange(len(self._tasks))
        prompt = _message(self._tasks[place].prompt)
        return Item(ordinal, f"g.{ordinal}.{tries}", lease_id, f"tm:{place}:1", "toy", prompt, self._size, tries)

    def verify(self, groups: Sequence[Group], attribution: Attribution) -> list[Group]:
        state = self.state()
        judged = []
        for group in groups:
            text = [decode(sample.ids) for sample in group.samples]
            key = hashlib.sha256(json.dumps([group.item.group_id, text, asdict(attribution)]).encode()).hexdigest()
            if key not in state["verdicts"]:
                first = not any(v["ordinal"] == group.item.ordinal for v in state["verdicts"].values())
                rows = [self._judge(group.item.ref, answer) for answer in text]
                if first and self._broken:
                    rows = [("sandbox_error", None)] * self._broken + rows[self._broken :]
                state["verdicts"][key] = {"ordinal": group.item.ordinal, "rows": rows}
            rows = state["verdicts"][key]["rows"]
            verdicts = tuple(
                Verdict(f"ver_{key[:12]}_{i}", outcome, reward) for i, (outcome, reward) in enumerate(rows)
            )
            judged.append(Group(group.item, group.samples, verdicts))
        self._write(state)
        return judged

    def _judge(self, ref: str, answer: str) -> tuple[str, float | None]:
        right = answer == self._tasks[int(ref.split(":")[1])].answer
        return ("verified", 1.0) if right else ("failed", 0.0)

    def complete(self, items: Sequence[Completion]) -> list[int]:
        state = self._mine()
        lost = []
        for item in items:
            row = state["ordinals"][item.ordinal]
            if row["lease"] != item.lease_id or row["state"] == "open":
                lost.append(item.ordinal)
            elif row["state"] == "leased":
                row |= {"state": "completed", "step": item.step, "acks": row["acks"] + 1}
        self._write(state)
        return lost

    def release(self, items: Sequence[Item], reason: str) -> None:
        state = self._mine()
        for item in items:
            if state["ordinals"][item.ordinal]["lease"] == item.lease_id:
                state["ordinals"][item.ordinal] |= {"state": "open", "reason": reason}
        self._write(state)

    def token(self) -> str:
        return json.dumps([row["ordinal"] for row in self._mine()["ordinals"] if row["state"] == "completed"])

    def restore(self, token: str) -> None:
        state, done = self.state(), set(json.loads(token))
        for row in state["ordinals"]:
            if row["ordinal"] not in done:
                row |= {"state": "open", "lease": None}
        state |= {"consumer": self._consumer, "generation": state["generation"] + 1}
        self._write(state)

    def expire_leases(self) -> None:
        """As if every lease had run out."""
        state = self.state()
        for row in state["ordinals"]:
            if row["state"] == "leased":
                row |= {"state": "open", "lease": None}
        self._write(state)

    def close(self) -> None: ...


class MemoryStream(FileStream):
    """The same without a file: for runs that are long and do not die."""

    def __init__(self, tasks: Sequence[Toy], group_size: int) -> None:
        self._kept: dict[str, Any] = {}
        super().__init__(Path("/nonexistent"), tasks, group_size, "memory")

    def state(self) -> dict[str, Any]:
        return self._kept

    def _write(self, state: dict[str, Any]) -> None:
        self._kept = state


class ToyTasks:
    """Suite and gold from two lists, judged by comparison."""

    def __init__(self, gold: Sequence[Toy], held_out: Sequence[Toy]) -> None:
        self._gold, self._held_out = gold, held_out

    def suite(self) -> list[HeldOut]:
        return [HeldOut(f"tm:{place}:1", "toy", _message(toy.prompt)) for place, toy in enumerate(self._held_out)]

    def gold(self) -> list[Gold]:
        return [Gold(_message(toy.prompt), toy.answer) for toy in self._gold]

    def judge(self, answers: Sequence[Answer], attribution: Attribution) -> list[Verdict]:
        right = [a.response == self._held_out[int(a.ref.split(":")[1])].answer for a in answers]
        return [Verdict(f"ver_{i}", "verified" if ok else "failed", float(ok)) for i, ok in enumerate(right)]
