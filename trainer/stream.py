"""The service as the trainer's stream: the service owns the position in the data, not a loader."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from taskmill_client import Client
from taskmill_client import types as t
from taskmill_client.errors import LeaseExpired, LeaseSuperseded, StaleConsumer
from trainer.config import Config
from trainer.contract import Attribution, Completion, Group, Item, StreamDry, Superseded
from trainer.heartbeat import Heartbeat
from trainer.judge import Answer, ServiceJudge
from trainer.models.characters import decode

T = TypeVar("T")
PAUSE_S = 1.0
DEFAULT_TTL_S = 60.0


class ServiceStream:
    """One named stream of the service, for one consumer. Close it: it runs a heartbeat thread."""

    def __init__(self, client: Client, config: Config, consumer: str) -> None:
        self._client, self._consumer, self._patience_s = client, consumer, config.stream.patience_s
        self._judge = ServiceJudge(client)
        found = client.streams.create(
            config.stream_name,
            domains=config.stream.domains,
            policy=config.stream.policy,
            group_size=config.rollout.group_size,
            seed=config.run.seed,
            split="train",  # no other split may be trained on
            # Leases stay open until the checkpoint that holds their step, so that many versions may lie between.
            max_lag=config.ckpt.every + 1,
        )
        self.identity, self.snapshot = found["id"], found["snapshot_hash"]
        self.started = found["next_ordinal"] > 0
        self._heartbeat = Heartbeat(client)
        self._never = threading.Event()

    @property
    def leases_lost(self) -> int:
        return self._heartbeat.lost

    def lease(self, n: int, policy_version: int) -> list[Item]:
        end = time.monotonic() + self._patience_s
        while True:
            answer = self._fenced(
                lambda: self._client.streams.lease(
                    self.identity, n, policy_version=policy_version, consumer=self._consumer
                )
            )
            if answer["items"]:
                return self._hold(answer)
            pause_s = answer.get("retry_after_s") or PAUSE_S
            if time.monotonic() + pause_s > end:
                raise StreamDry(f"the stream served nothing for {self._patience_s:g} s: {answer['reason']}")
            self._never.wait(timeout=pause_s)

    def _hold(self, answer: t.Lease) -> list[Item]:
        lease_id = str(answer["lease_id"])
        self._heartbeat.hold(lease_id, answer["ttl_s"] or DEFAULT_TTL_S, [i["ordinal"] for i in answer["items"]])
        return [
            Item(
                ordinal=row["ordinal"],
                group_id=row["group_id"],
                lease_id=lease_id,
                ref=row["ref"],
                domain=row["domain"],
                prompt=row["prompt"],
                group_size=row["group_size"],
                tries=row["tries"],
            )
            for row in answer["items"]
        ]

    def verify(self, groups: Sequence[Group], attribution: Attribution) -> list[Group]:
        answers = [
            Answer(group.item.ref, decode(sample.ids), group.item.group_id, len(sample.ids))
            for group in groups
            for sample in group.samples
        ]
        verdicts = iter(self._judge.judge(answers, attribution))
        return [Group(g.item, g.samples, tuple(next(verdicts) for _ in g.samples)) for g in groups]

    def complete(self, items: Sequence[Completion]) -> list[int]:
        lost: list[int] = []
        ordered = sorted(items, key=attrgetter("lease_id", "ordinal"))
        for lease_id, part in groupby(ordered, key=attrgetter("lease_id")):
            lost += self._complete(lease_id, list(part))
        return lost

    def _complete(self, lease_id: str, items: list[Completion]) -> list[int]:
        ordinals = [item.ordinal for item in items]
        self._heartbeat.drop(lease_id, ordinals)
        try:
            answer = self._fenced(lambda: self._client.leases.complete(lease_id, [_completion(i) for i in items]))
        except LeaseExpired:
            return ordinals
        return [row["ordinal"] for row in answer["items"] if row.get("status") not in ("completed", "already")]

    def release(self, items: Sequence[Item], reason: str) -> None:
        ordered = sorted(items, key=attrgetter("lease_id", "ordinal"))
        for lease_id, part in groupby(ordered, key=attrgetter("lease_id")):
            ordinals = [item.ordinal for item in part]
            self._heartbeat.drop(lease_id, ordinals)
            try:
                self._client.leases.release(lease_id, ordinals, reason=reason)
            except (LeaseExpired, LeaseSuperseded, StaleConsumer):
                continue  # whoever holds them now decides

    def token(self) -> str:
        return self._client.streams.checkpoint(self.identity)

    def restore(self, token: str) -> None:
        self._heartbeat.forget_all()
        self._client.streams.restore(self.identity, token, consumer=self._consumer)

    def close(self) -> None:
        self._heartbeat.close()

    def _fenced(self, call: Callable[[], T]) -> T:
        if self._heartbeat.superseded.is_set():
            raise Superseded("another trainer restored this stream")
        try:
            return call()
        except (StaleConsumer, LeaseSuperseded) as error:
            raise Superseded(f"another trainer restored this stream: {error.detail}") from error


def _completion(item: Completion) -> t.Completion:
    body: t.Completion = {
        "ordinal": item.ordinal,
        "verdict_ids": [verdict_id for verdict_id in item.verdict_ids if verdict_id],
        "weight": item.weight,
        "tokens": item.tokens,
        "mean_abs_advantage": item.mean_abs_advantage,
        "step": item.step,
        "policy_version": item.policy_version,
    }
    if item.reason is not None:
        body["reason"] = item.reason
    return body
