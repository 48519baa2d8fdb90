"""Tasks beside the stream: the fixed suite of held-out tasks, and gold answers for the cold start."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from taskmill_client import Client
from taskmill_client.types import TaskSummary
from trainer.config import Config
from trainer.contract import Attribution, TrainerError, Verdict
from trainer.judge import Answer, ServiceJudge


class Gold(NamedTuple):
    """A prompt and one right answer to it."""

    prompt: Sequence[Any]
    answer: str


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One task of the evaluation suite; `domain` is the stream's name for it."""

    ref: str
    domain: str
    prompt: list[dict[str, Any]]


class TaskSource(Protocol):
    """Where suite and gold come from; the service is one, tests have one of their own."""

    def suite(self) -> list[HeldOut]: ...

    def gold(self) -> list[Gold]: ...

    def judge(self, answers: Sequence[Answer], attribution: Attribution) -> list[Verdict]: ...


class ServiceTasks:
    """Reads tasks over HTTP. The suite is chosen once for a run and written to its folder."""

    def __init__(self, client: Client, config: Config, out: Path) -> None:
        self._client, self._config, self._path = client, config, out / "suite.json"
        self.judge = ServiceJudge(client).judge

    def suite(self) -> list[HeldOut]:
        """The held-out tasks of every domain of the stream; later growth of the data set does not change them."""
        if not self._path.exists():
            rows = list(self._held_out())
            self._path.write_text(json.dumps([asdict(row) for row in rows]), encoding="utf-8")
        return [HeldOut(**row) for row in json.loads(self._path.read_text(encoding="utf-8"))]

    def _held_out(self) -> Iterator[HeldOut]:
        for domain in sorted(self._config.stream.domains):
            for row in self._chosen(domain, self._config.eval.split, self._config.eval.tasks_per_domain):
                task = self._client.tasks.get(row["id"])
                yield HeldOut(task["ref"], domain, [dict(message) for message in task["prompt"]])

    def gold(self) -> list[Gold]:
        """Gold answers of the split train, or the rows `{prompt, response}` of a JSONL file."""
        sft = self._config.sft
        if sft.source != "gold":
            return _rows(Path(sft.source))
        found = []
        for domain in sorted(self._config.stream.domains):
            for row in self._chosen(domain, "train", sft.tasks.get(domain, sft.tasks_per_domain)):
                task = self._client.tasks.get(row["id"], answers=True)
                shown = task.get("answers")
                texts = [answer for answer in shown["gold"] if isinstance(answer, str)] if shown else []
                if texts:
                    found.append(Gold(task["prompt"], texts[0]))
        if not found:
            raise TrainerError(
                "no active task of the split train has a gold answer; set sft.steps=0, or name a JSONL in sft.source"
            )
        return found

    def _chosen(self, domain: str, split: str, count: int) -> list[TaskSummary]:
        """A fixed choice: by a hash of the id, so neither age nor place in a list decides."""
        listed = self._client.tasks.list(status="active", split=split, domain=domain)
        rows = {row["id"]: row for row in listed}
        order = sorted(rows, key=lambda task_id: hashlib.sha256(f"{self._config.run.seed}:{task_id}".encode()).digest())
        return [rows[task_id] for task_id in order[:count]]


def _rows(path: Path) -> list[Gold]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        return [Gold([{"role": "user", "content": row["prompt"]}], row["response"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainerError(f"sft.source {path}: needs lines of {{prompt, response}}: {error}") from error
