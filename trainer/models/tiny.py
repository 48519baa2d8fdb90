"""A small GPT to read: RMSNorm, rotary positions, normalised queries and keys, squared ReLU, tied embeddings.

Positions are given, not counted, so one forward serves padded training batches and cached generation alike.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class TinyShape:
    layers: int = 2
    dim: int = 64
    heads: int = 4
    vocabulary: int = 99


ROPE_BASE = 100.0  # prompts are tens of characters: slow rotations would not tell their places apart
SHARPNESS = 1.5  # of normalised queries and keys, whose products would else be too small to single one place out


class KeyValueCache:
    """Keys and values of one layer, in a buffer that holds a whole response: appending copies nothing."""

    def __init__(self, keys: Tensor, values: Tensor, room: int) -> None:
        batch, heads, length, width = keys.shape
        self.keys = keys.new_zeros(batch, heads, length + room, width)
        self.values = torch.zeros_like(self.keys)
        self.length = 0
        self.append(keys, values)

    def choose(self, rows: Tensor) -> None:
        """The cache of these rows: the prompt of a group is read once and used by all its samples."""
        self.keys, self.values = self.keys[rows], self.values[rows]

    def append(self, keys: Tensor, values: Tensor) -> None:
        end = self.length + keys.shape[2]
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end


class Heads(NamedTuple):
    """Queries, keys and values, as batch × heads × length × width."""

    q: Tensor
    k: Tensor
    v: Tensor


class Prefilled(NamedTuple):
    """The last hidden state of each prompt, and the cache of each layer."""

    hidden: Tensor
    caches: list[KeyValueCache]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding: the first and the second half of each head are the two coordinates."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: TinyShape) -> None:
        super().__init__()
        self.heads, self.width = shape.heads, shape.dim // shape.heads
        self.qkv = nn.Linear(shape.dim, 3 * shape.dim, bias=False)
        self.out = nn.Linear(shape.dim, shape.dim, bias=False)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> Heads:
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        # Normalised queries and keys keep the logits bounded, so a high learning rate does not blow up.
        q, k = F.rms_norm(q, (self.width,)), F.rms_norm(k, (self.width,))
        return Heads(rotate(q, cos, sin) * SHARPNESS, rotate(k, cos, sin) * SHARPNESS, v)

    def merge(self, y: Tensor) -> Tensor:
        batch, _, length, _ = y.shape
        merged: Tensor = self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return merged


class Block(nn.Module):
    def __init__(self, shape: TinyShape) -> None:
        super().__init__()
        self.dim = shape.dim
        self.attention = Attention(shape)
        self.up = nn.Linear(shape.dim, 4 * shape.dim, bias=False)
        self.down = nn.Linear(4 * shape.dim, shape.dim, bias=False)

    def feed(self, x: Tensor) -> Tensor:
        fed: Tensor = self.down(F.relu(self.up(F.rms_norm(x, (self.dim,)))).square())
        return fed


class TinyGPT(nn.Module):
    def __init__(self, shape: TinyShape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.dim)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        half = shape.dim // shape.heads // 2
        self.register_buffer("frequencies", ROPE_BASE ** (-torch.arange(half) / half), persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                nn.init.zeros_(parameter)  # every block starts as the identity
            else:
                nn.init.normal_(parameter, std=0.02 if "embed" in name else self.shape.dim**-0.5)

    def _angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[:, None, :, None].float() * self.get_buffer("frequencies")
        return angles.cos(), angles.sin()

    def hidden(self, ids: Tensor) -> Tensor:
        """Last hidden states of right-padded sequences: what follows a token never reaches it."""
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        cos, sin = self._angles(positions)
        x = self.embed(ids)
        for block in self.blocks:
            assert isinstance(block, Block)
            q, k, v = block.attention.project(F.rms_norm(x, (self.shape.dim,)), cos, sin)
            x = x + block.attention.merge(F.scaled_dot_product_attention(q, k, v, is_causal=True))
            x = x + block.feed(x)
        return F.rms_norm(x, (self.shape.dim,))

    def prefill(self, ids: Tensor, padding: Tensor, room: int) -> Prefilled:
        """Read left-padded prompts; `padding` counts the pads of each row. Answers the last hidden state of each."""
        length = ids.shape[1]
        steps = torch.arange(length, device=ids.device)
        cos, sin = self._angles((steps[None] - padding[:, None]).clamp(min=0))
        causal = steps[None, :] <= steps[:, None]
        # A pad row attends to itself: a row with nothing to attend to would be NaN.
        seen = (causal[None] & (steps[None, None] >= padding[:, None, None])) | torch.eye(length, dtype=torch.bool)
        x = self.embed(ids)
        caches = []
        for block in self.blocks:
            assert isinstance(block, Block)
            q, k, v = block.attention.project(F.rms_norm(x, (self.shape.dim,)), cos, sin)
            caches.append(KeyValueCache(k, v, room))
            x = x + block.attention.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None]))
            x = x + block.feed(x)
        return Prefilled(F.rms_norm(x[:, -1], (self.shape.dim,)), caches)

    def step(self, ids: Tensor, positions: Tensor, padding: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """One more token for each row; answers its hidden state."""
        cos, sin = self._angles(positions[:, None])
        x = self.embed(ids[:, None])
        total = caches[0].length + 1
        seen = torch.arange(total, device=ids.device)[None] >= padding[:, None]
        for block, cache in zip(self.blocks, caches, strict=True):
            assert isinstance(block, Block)
            q, k, v = block.attention.project(F.rms_norm(x, (self.shape.dim,)), cos, sin)
            cache.append(k, v)
            keys, values = cache.keys[:, :, :total], cache.values[:, :, :total]
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen[:, None, None])
            x = x + block.attention.merge(y)
            x = x + block.feed(x)
        return F.rms_norm(x[:, 0], (self.shape.dim,))

    @property
    def head(self) -> Tensor:
        """Weights of the output layer: the embedding itself."""
        return self.embed.weight
