"""Log-probabilities and entropy of chosen ids, in chunks: no tensor of tokens × vocabulary is kept for backward."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK_TOKENS = 4096


class TokenScores(NamedTuple):
    """One value for each scored token, in fp32."""

    logp: Tensor
    entropy: Tensor


def _chunk(hidden: Tensor, head: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    logps = torch.log_softmax(hidden.float() @ head.float().T / temperature, dim=-1)
    entropy = -(logps.exp() * logps).sum(dim=-1)
    return logps.gather(1, targets[:, None])[:, 0], entropy


def token_scores(
    hidden: Tensor, head: Tensor, targets: Tensor, temperature: float, chunk_tokens: int = CHUNK_TOKENS
) -> TokenScores:
    """Scores of `targets` (tokens) given `hidden` (tokens × dim), as sampled at `temperature`."""
    if len(targets) <= chunk_tokens:
        return TokenScores(*_chunk(hidden, head, targets, temperature))
    parts = [
        checkpoint(_chunk, h, head, t, temperature, use_reentrant=False)
        for h, t in zip(torch.split(hidden, chunk_tokens), torch.split(targets, chunk_tokens), strict=True)
    ]
    return TokenScores(torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts]))
