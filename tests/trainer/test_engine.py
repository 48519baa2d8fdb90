"""The sampler, the model and the tokenizer: ids in are the ids trained, whoever shares the batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batching import Pair, micro_batches
from trainer.contract import Request
from trainer.engines.local import LocalEngine
from trainer.logprobs import token_scores
from trainer.models.characters import ALPHABET, EOS, PAD, UNKNOWN, VOCABULARY, decode, encode, prompt_text
from trainer.models.tiny import TinyGPT, TinyShape
from trainer.prompts import prompt_ids, sample_seed


@pytest.fixture(scope="module")
def model() -> TinyGPT:
    torch.manual_seed(1)
    made = TinyGPT(TinyShape(layers=2, dim=32, heads=4))
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


PROMPTS = ["rev 123=", "a", "sort 9 8 7 6=", "rev 123=", "max 10 9="]


def requests(count: int = 20) -> list[Request]:
    return [Request(encode(PROMPTS[i % len(PROMPTS)]), sample_seed(0, i, 0, 0)) for i in range(count)]


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_the_engines_logprobs_are_the_trainers(model: TinyGPT, temperature: float) -> None:
    """#12: KV cache, left padding and temperature against one full forward: within 1e-4."""
    samples = LocalEngine(model).generate(requests(), temperature, 12)
    pairs = [Pair(sample.prompt_ids, sample.ids) for sample in samples]
    for micro in micro_batches(pairs, 90):
        hidden = model.hidden(micro.ids)[micro.rows, micro.columns]
        found = token_scores(hidden, model.head, micro.targets, temperature).logp.detach()
        places = zip(micro.sequence.tolist(), micro.offset.tolist(), strict=True)
        behaviour = torch.tensor([samples[i].logps[j] for i, j in places])
        assert float((found - behaviour).abs().max()) < 1e-4


def test_the_same_seeds_give_the_same_samples(model: TinyGPT) -> None:
    engine = LocalEngine(model)
    assert engine.generate(requests(), 1.0, 12) == engine.generate(requests(), 1.0, 12)


def test_a_samples_randomness_does_not_depend_on_its_batch(model: TinyGPT) -> None:
    together = LocalEngine(model).generate(requests(), 1.0, 12)
    alone = LocalEngine(model, max_batch=1).generate(requests(), 1.0, 12)
    assert [sample.ids for sample in together] == [sample.ids for sample in alone]


def test_other_seeds_give_other_samples_and_the_distribution(model: TinyGPT) -> None:
    """The inverted distribution: first tokens come as often as their probability says."""
    count = 4000
    prompt = encode("rev 123=")
    samples = LocalEngine(model).generate([Request(prompt, sample_seed(1, i, 0, 0)) for i in range(count)], 1.0, 1)
    logits = (model.hidden(torch.tensor([prompt]))[0, -1] @ model.head.T).detach()
    expected = torch.softmax(logits, dim=-1)
    counts = torch.bincount(torch.tensor([sample.ids[0] for sample in samples]), minlength=VOCABULARY) / count
    assert float((counts - expected).abs().max()) < 0.03


def test_greedy_takes_the_best_and_needs_no_seed(model: TinyGPT) -> None:
    first, second = (LocalEngine(model).generate([Request(encode("a"), seed)], 0.0, 5)[0] for seed in (1, 2))
    assert first.ids == second.ids


def test_a_response_ends_at_eos_or_at_the_limit(model: TinyGPT) -> None:
    """#18: by position; EOS is part of the response, nothing stands after it."""
    for sample in LocalEngine(model).generate(requests(200), 1.0, 6):
        assert len(sample.ids) == len(sample.logps) <= 6
        assert (sample.finish == "stop") == (sample.ids[-1] == EOS)
        assert EOS not in sample.ids[:-1]


def test_sampled_tensors_can_be_trained(model: TinyGPT) -> None:
    """Sampling is under no_grad, not inference_mode."""
    LocalEngine(model).generate(requests(2), 1.0, 3)
    model.hidden(torch.tensor([encode("abc")])).sum().backward()
    model.zero_grad()


@given(st.text(alphabet=ALPHABET, max_size=60))
@settings(max_examples=60, deadline=None)
def test_text_of_the_alphabet_survives(text: str) -> None:
    ids = encode(text)
    assert decode(ids) == text
    assert decode((*ids, EOS)) == text
    assert all(0 <= index < VOCABULARY for index in ids)


@given(st.lists(st.integers(0, VOCABULARY - 1), max_size=20))
@settings(max_examples=60, deadline=None)
def test_no_control_id_hides_inside_a_response(ids: list[int]) -> None:
    """#19: a PAD, EOS or UNKNOWN inside shows as U+FFFD, so it can never be judged as if it were not there."""
    body = ids[:-1] if ids and ids[-1] == EOS else ids
    text = decode(ids)
    assert len(text) == len(body)
    assert [c == "\ufffd" for c in text] == [index in (PAD, EOS, UNKNOWN) for index in body]


def test_characters_outside_the_alphabet_are_unknown_not_lost() -> None:
    assert decode(encode("naïve\t")) == "na\ufffdve\ufffd"


def test_prompts_join_their_messages_and_are_never_empty() -> None:
    assert prompt_text([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]) == "a\nb"
    assert prompt_ids([{"role": "user", "content": ""}]) == encode("\n")


def test_seeds_differ_by_every_part() -> None:
    seeds = {sample_seed(r, o, t, i) for r in range(3) for o in range(3) for t in range(3) for i in range(3)}
    assert len(seeds) == 81
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_scores_in_chunks_equal_scores_at_once() -> None:
    torch.manual_seed(0)
    hidden, head = torch.randn(50, 16, requires_grad=True), torch.randn(30, 16, requires_grad=True)
    targets = torch.randint(30, (50,))
    whole, parts = (token_scores(hidden, head, targets, 0.7, chunk) for chunk in (100, 7))
    assert torch.allclose(whole.logp, parts.logp, atol=1e-6)
    assert torch.allclose(whole.entropy, parts.entropy, atol=1e-6)
    (a,) = torch.autograd.grad(whole.logp.sum(), head, retain_graph=True)
    (b,) = torch.autograd.grad(parts.logp.sum(), head)
    assert torch.allclose(a, b, atol=1e-5)
