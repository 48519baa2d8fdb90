"""Micro-batches: sequences ordered by length, as many as fit the token budget, right-padded.

A sequence keeps its place number, so whatever is computed for sequence i stays with sequence i.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.models.characters import PAD

Ids = tuple[int, ...]


class Pair(NamedTuple):
    """A prompt and the response to it, as ids; only the response is trained."""

    prompt: Ids
    response: Ids


class MicroBatch(NamedTuple):
    """`rows`/`columns` point at the hidden states that predict response tokens, `targets` are those tokens.

    `sequence` is the place number of each target's sequence, `offset` its place in the response.
    """

    ids: Tensor
    rows: Tensor
    columns: Tensor
    targets: Tensor
    sequence: Tensor
    offset: Tensor


def _collate(pairs: Sequence[Pair], places: Sequence[int]) -> MicroBatch:
    longest = max(len(pairs[i].prompt) + len(pairs[i].response) for i in places)
    ids: list[Ids] = []
    rows: list[int] = []
    columns: list[int] = []
    targets: list[int] = []
    sequence: list[int] = []
    offset: list[int] = []
    for row, i in enumerate(places):
        prompt, response = pairs[i]
        ids.append(prompt + response + (PAD,) * (longest - len(prompt) - len(response)))
        rows += [row] * len(response)
        # The state at the last prompt token predicts the first response token.
        columns += range(len(prompt) - 1, len(prompt) + len(response) - 1)
        targets += response
        sequence += [i] * len(response)
        offset += range(len(response))
    return MicroBatch(
        *(torch.tensor(part, dtype=torch.long) for part in (ids, rows, columns, targets, sequence, offset))
    )


def micro_batches(pairs: Sequence[Pair], tokens_per_micro: int) -> Iterator[MicroBatch]:
    """Every non-empty response in exactly one micro-batch; a sequence over the budget travels alone."""
    lengths = [len(pair.prompt) + len(pair.response) for pair in pairs]
    order = sorted((i for i in range(len(pairs)) if pairs[i].response), key=lambda i: (lengths[i], i))
    places: list[int] = []
    for i in order:
        if places and (len(places) + 1) * lengths[i] > tokens_per_micro:
            yield _collate(pairs, places)
            places = []
        places.append(i)
    if places:
        yield _collate(pairs, places)
