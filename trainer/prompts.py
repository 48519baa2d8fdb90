"""Messages to ids, and the seed of every sample."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.models.characters import encode, prompt_text


def prompt_ids(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """The ids a policy continues; an empty prompt is a line break, since a model needs something to read."""
    return encode(prompt_text(messages)) or encode("\n")


def sample_seed(run_seed: int, ordinal: int, attempt: int, index: int) -> int:
    """Of one sample: work that is done again is the same work. 63 bits."""
    digest = hashlib.sha256(f"{run_seed}:{ordinal}:{attempt}:{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
