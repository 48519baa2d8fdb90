"""What a checkpoint knows besides weights: the position, what was trained since, and what was measured."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trainer.contract import Completion


@dataclass(slots=True)
class Ledger:
    """`trained` holds steps that the weights have seen and the service has not yet been told of.

    `tries` counts how often an ordinal was handed back for want of verdicts: it is part of the sample seeds.
    `evals` maps a phase ("untrained", "sft", "step-40", "final") to the pass rate of each domain; `passes` holds the
    results of the phases that are compared, one number for each task.
    """

    run_id: str
    eval_run_id: str
    stream: str
    snapshot: str
    step: int = 0
    token: str = ""
    trained: dict[int, Completion] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    evals: dict[str, dict[str, float]] = field(default_factory=dict)
    passes: dict[str, list[float | None]] = field(default_factory=dict)

    @property
    def policy_version(self) -> int:
        """The number of steps that made the present weights; the cold start is version 0."""
        return self.step

    def count(self, name: str, n: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + n

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"trained": [asdict(item) for item in self.trained.values()]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Ledger":
        known = {name: data[name] for name in (f.name for f in fields(cls)) if name in data}
        items = [Completion(**(row | {"verdict_ids": tuple(row["verdict_ids"])})) for row in known.pop("trained")]
        tries = {int(ordinal): count for ordinal, count in known.pop("tries").items()}
        return cls(**known, trained={item.ordinal: item for item in items}, tries=tries)
