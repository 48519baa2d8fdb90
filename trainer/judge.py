"""Rewards: text goes to `/v1/verify:batch`, verdicts come back. Nothing else in the trainer makes a reward."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from taskmill_client import Client
from taskmill_client.types import Verdict as VerdictOut
from taskmill_client.types import VerifyItem
from trainer.contract import Attribution, Verdict

BATCH = 1024
_NAMESPACE = uuid.UUID("6f1d2a52-6f0f-5a1c-9c57-0a4f7f3f2b11")


class Answer(NamedTuple):
    """One response to one task; `group_id` joins the responses that one group made."""

    ref: str
    response: str
    group_id: str
    tokens: int


class ServiceJudge:
    """The judge that is the service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def judge(self, answers: Sequence[Answer], attribution: Attribution) -> list[Verdict]:
        """One verdict for each answer, in order.

        The Idempotency-Key is a digest of the content: the same answers again, also after a crash, give the same
        verdicts and are counted once.
        """
        verdicts: list[Verdict] = []
        for start in range(0, len(answers), BATCH):
            items = [_item(answer, attribution) for answer in answers[start : start + BATCH]]
            digest = hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
            key = str(uuid.uuid5(_NAMESPACE, digest))
            verdicts += map(_verdict, self._client.verify_batch(items, idempotency_key=key))
        return verdicts


def _item(answer: Answer, attribution: Attribution) -> VerifyItem:
    return {
        "ref": answer.ref,
        "response": answer.response,
        "attempt": {
            "policy": attribution.policy,
            "policy_version": attribution.policy_version,
            "run": attribution.run,
            "group_id": answer.group_id,
            "tokens": answer.tokens,
        },
    }


def _verdict(found: VerdictOut) -> Verdict:
    if found.get("problem"):
        # Refused by the service: not the response's fault, so no number stands for it.
        return Verdict("", "verifier_error", None)
    return Verdict(found["id"], found["outcome"], found["reward"])
