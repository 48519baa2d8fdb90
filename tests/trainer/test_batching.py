"""Micro-batches hold every response token exactly once, and nothing of a prompt."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batching import Pair, micro_batches
from trainer.models.characters import EOS, PAD, decode, encode

IDS = st.lists(st.integers(3, 90), min_size=1, max_size=12).map(tuple)
PAIRS = st.lists(st.builds(Pair, IDS, st.one_of(st.just(()), IDS)), max_size=20)


@given(PAIRS, st.integers(1, 200))
@settings(max_examples=60, deadline=None)
def test_each_response_token_is_trained_once_where_it_stands(pairs: list[Pair], budget: int) -> None:
    """#21: whatever the order, token and sequence belong together."""
    seen: dict[tuple[int, int], int] = {}
    for micro in micro_batches(pairs, budget):
        assert micro.ids.numel() <= budget or len(micro.ids) == 1
        for row, column, target, sequence, offset in zip(*(part.tolist() for part in micro[1:]), strict=True):
            assert micro.ids[row, column + 1] == target
            assert micro.ids[row, : len(pairs[sequence].prompt)].tolist() == list(pairs[sequence].prompt)
            assert (sequence, offset) not in seen
            seen[sequence, offset] = target
    assert seen == {(i, j): token for i, pair in enumerate(pairs) for j, token in enumerate(pair.response)}


def test_the_trained_part_is_the_response_and_its_end() -> None:
    """The mask decodes to exactly the response plus EOS; padding may equal anything, the position decides."""
    pairs = [Pair(encode("rev 12="), (*encode("21"), EOS)), Pair(encode("r="), (*encode("4"), PAD, EOS))]
    (micro,) = micro_batches(pairs, 1000)
    for place, expected in ((0, "21"), (1, "4\ufffd")):
        ids = micro.targets[micro.sequence == place].tolist()
        assert ids[-1] == EOS
        assert decode(ids) == expected
