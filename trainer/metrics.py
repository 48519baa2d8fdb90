"""Metrics: always to `metrics.jsonl`, and to the run that the service shows. A sink that fails never stops training."""

import json
import math
import queue
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from taskmill_client import Client, TaskmillError
from taskmill_client.types import Point
from trainer.contract import Group
from trainer.loss import informative

JOIN_S = 20.0
QUEUE = 1000
POINTS = 500
"""Points of one post."""


class Sink(Protocol):
    def write(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self, status: str, summary: Mapping[str, Any]) -> None: ...


class JsonlSink:
    """One line a step. A resume drops the lines of steps that its checkpoint does not hold."""

    def __init__(self, path: Path, after_step: int) -> None:
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        kept = [line + "\n" for line in lines if line and _step_of(line) <= after_step]
        path.write_text("".join(kept), encoding="utf-8")
        self._path = path

    def write(self, step: int, values: Mapping[str, float]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")

    def close(self, status: str, summary: Mapping[str, Any]) -> None:
        pass


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf  # half a line, cut by a crash


class ServiceSink:
    """The service's run, posted from a thread of its own: a slow or absent service costs points, never steps."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client, self._run_id = client, run_id
        self._queue: queue.Queue[list[Point] | None] = queue.Queue(maxsize=QUEUE)
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="run-metrics", daemon=True)
        self._thread.start()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        points: list[Point] = [{"step": step, "name": n, "value": v} for n, v in values.items() if math.isfinite(v)]
        try:
            self._queue.put_nowait(points)
        except queue.Full:
            self.dropped += len(points)

    def _run(self) -> None:
        ended = False
        while not ended:
            rows = [self._queue.get()]  # house: H27 ends by the None that close() puts
            while not self._queue.empty():
                rows.append(self._queue.get_nowait())
            ended = None in rows
            points = [point for row in rows if row for point in row]
            try:
                for start in range(0, len(points), POINTS):
                    self._client.runs.log(self._run_id, points[start : start + POINTS])
            except TaskmillError:
                self.dropped += len(points)

    def close(self, status: str, summary: Mapping[str, Any]) -> None:
        try:
            self._queue.put(None, timeout=JOIN_S)
        except queue.Full:
            return
        self._thread.join(timeout=JOIN_S)
        try:
            self._client.runs.log(self._run_id, [], status=status, summary=summary)
        except TaskmillError:
            self.dropped += 1


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """What one step's groups say; absent rewards are counted among the outcomes and nowhere else."""
    samples = [sample for group in groups for sample in group.samples]
    verdicts = [verdict for group in groups for verdict in group.verdicts]
    rewards = [verdict.reward for verdict in verdicts if verdict.reward is not None]
    lengths = [len(sample.ids) for sample in samples]
    signal = [informative([v.reward for v in group.verdicts]) for group in groups]
    found = {
        "reward/mean": _mean(rewards),
        "group/zero_std_frac": 1 - _mean(signal),
        "group/effective_share": _mean(signal),
        "len/mean": _mean(lengths),
        "len/max": float(max(lengths, default=0)),
        "len/truncated_frac": _mean([sample.finish == "length" for sample in samples]),
        "verify/error_frac": _mean([verdict.reward is None for verdict in verdicts]),
    }
    for outcome in sorted({verdict.outcome for verdict in verdicts}):
        found[f"outcome/{outcome}_frac"] = _mean([verdict.outcome == outcome for verdict in verdicts])
    for domain in sorted({group.item.domain for group in groups}):
        mine = [v.reward for g in groups if g.item.domain == domain for v in g.verdicts if v.reward is not None]
        found[f"reward/{domain}/mean"] = _mean(mine)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
