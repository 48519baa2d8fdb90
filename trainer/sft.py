"""The cold start: supervised steps on a few gold answers, loss on response and EOS only."""

import random
from collections.abc import Callable, Sequence

import torch

from trainer.batching import Pair, micro_batches
from trainer.config import Config
from trainer.logprobs import token_scores
from trainer.models.tiny import TinyGPT


def cold_start(
    model: TinyGPT, pairs: Sequence[Pair], config: Config, report: Callable[[int, float], None] | None = None
) -> None:
    """Train on batches of `pairs`, each epoch in an order of the run's seed; the loss is per token of the batch."""
    sft, chooser = config.sft, random.Random(config.run.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=sft.lr, betas=(0.9, 0.95), weight_decay=sft.wd)
    left: list[int] = []
    for step in range(sft.steps):
        while len(left) < sft.batch_size:
            epoch = list(range(len(pairs)))
            chooser.shuffle(epoch)
            left += epoch
        batch, left = [pairs[i] for i in left[: sft.batch_size]], left[sft.batch_size :]
        for group in optimizer.param_groups:
            group["lr"] = sft.lr * min(1.0, (step + 1) / max(1, sft.warmup))
        tokens = sum(len(pair.response) for pair in batch)
        total = 0.0
        for micro in micro_batches(batch, config.batch.tokens_per_micro):
            states = model.hidden(micro.ids)[micro.rows, micro.columns]
            loss = -token_scores(states, model.head, micro.targets, temperature=1.0).logp.sum() / tokens
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if report:
            report(step + 1, total)
