"""The local rollout engine: a KV cache, left-padded prompts, and one random stream for each sample.

All uniforms of a sample come from its own seeded generator in one call and the cumulative distribution is inverted,
so its randomness does not depend on who shares its batch. Its floats still may: bit equality holds for the same batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.contract import Request, Sample
from trainer.models.characters import EOS, PAD
from trainer.models.tiny import KeyValueCache, TinyGPT


class _Prompts(NamedTuple):
    """The distinct prompts of a batch, left-padded; `rows` says which prompt each request has."""

    ids: Tensor
    padding: Tensor
    rows: Tensor


class LocalEngine:
    """Samples from a model in this process; it always uses the model's present weights."""

    def __init__(self, model: TinyGPT, max_batch: int = 512) -> None:
        self._model = model
        self._max_batch = max_batch

    def generate(self, requests: Sequence[Request], temperature: float, max_new_tokens: int) -> list[Sample]:
        """One sample for each request, in order; temperature 0 is greedy."""
        samples: list[Sample] = []
        for start in range(0, len(requests), self._max_batch):
            samples += self._batch(requests[start : start + self._max_batch], temperature, max_new_tokens)
        return samples

    @torch.no_grad()  # not inference_mode: its tensors cannot be saved for backward
    def _batch(self, requests: Sequence[Request], temperature: float, max_new_tokens: int) -> list[Sample]:
        prompts = _gather(requests)
        hidden, caches = self._model.prefill(prompts.ids, prompts.padding, room=max_new_tokens)
        hidden, padding = hidden[prompts.rows], prompts.padding[prompts.rows]
        for cache in caches:
            cache.choose(prompts.rows)
        uniforms = _uniforms(requests, max_new_tokens) if temperature > 0 else None
        ids, logps = self._roll(hidden, padding, caches, uniforms, temperature, max_new_tokens)
        return [_sample(request, i, p) for request, i, p in zip(requests, ids.tolist(), logps.tolist(), strict=True)]

    def _roll(
        self,
        hidden: Tensor,
        padding: Tensor,
        caches: list[KeyValueCache],
        uniforms: Tensor | None,
        temperature: float,
        max_new_tokens: int,
    ) -> tuple[Tensor, Tensor]:
        alive = torch.ones(len(hidden), dtype=torch.bool)
        ids, logps = [], []
        for index in range(max_new_tokens):
            chosen, logp = _choose(
                hidden @ self._model.head.T, uniforms[:, index] if uniforms is not None else None, temperature
            )
            ids.append(torch.where(alive, chosen, PAD))
            logps.append(logp)
            alive = alive & (chosen != EOS)
            if index + 1 == max_new_tokens or not bool(alive.any()):
                break
            positions = caches[0].length - padding
            hidden = self._model.step(chosen, positions, padding, caches)
        return torch.stack(ids, dim=1), torch.stack(logps, dim=1)


def _gather(requests: Sequence[Request]) -> _Prompts:
    distinct = list(dict.fromkeys(request.prompt_ids for request in requests))
    place = {prompt: row for row, prompt in enumerate(distinct)}
    longest = max(map(len, distinct))
    ids = torch.tensor([(PAD,) * (longest - len(prompt)) + prompt for prompt in distinct])
    padding = torch.tensor([longest - len(prompt) for prompt in distinct])
    return _Prompts(ids, padding, torch.tensor([place[request.prompt_ids] for request in requests]))


def _uniforms(requests: Sequence[Request], count: int) -> Tensor:
    generator = torch.Generator()
    rows = [
        torch.rand(count, generator=generator.manual_seed(request.seed), dtype=torch.float64) for request in requests
    ]
    return torch.stack(rows)


def _choose(logits: Tensor, uniform: Tensor | None, temperature: float) -> tuple[Tensor, Tensor]:
    """The chosen ids and their log-probabilities under the processed distribution."""
    logps = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
    if uniform is None:
        chosen = logps.argmax(dim=-1)
    else:
        cumulative = logps.double().exp().cumsum(dim=-1)
        # Rounding may leave the total just under 1: scale the draw, so the last id with mass is the worst case.
        chosen = torch.searchsorted(cumulative, (uniform * cumulative[:, -1])[:, None], right=True)[:, 0]
        chosen = chosen.clamp(max=logits.shape[-1] - 1)
    return chosen, logps.gather(1, chosen[:, None])[:, 0]


def _sample(request: Request, ids: list[int], logps: list[float]) -> Sample:
    length = ids.index(EOS) + 1 if EOS in ids else len(ids)
    finish = "stop" if EOS in ids else "length"
    return Sample(request.prompt_ids, tuple(ids[:length]), tuple(logps[:length]), finish, request.seed)
