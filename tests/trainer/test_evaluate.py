"""Pass rates: the unbiased formula, intervals, and what our own failures do to them."""

from collections.abc import Sequence
from itertools import combinations

import pytest

from trainer.contract import Attribution, Request, Sample, Verdict
from trainer.evaluate import Evaluator, paired_interval, pass_at_k
from trainer.judge import Answer
from trainer.models.characters import EOS, encode
from trainer.tasks import HeldOut


@pytest.mark.parametrize("n", [1, 4, 6])
def test_pass_at_k_is_the_share_of_draws_with_a_pass(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            draws = list(combinations([True] * c + [False] * (n - c), k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_an_interval_is_paired_and_leaves_unjudged_tasks_out() -> None:
    before = [0.0, 1.0, None, 0.0, 0.0]
    after = [1.0, 1.0, 1.0, None, 0.0]
    found = paired_interval(after, before, seed=0)
    assert found is not None
    assert found.mean == pytest.approx(1 / 3)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found == paired_interval(after, before, seed=0)
    assert paired_interval([None], [1.0], seed=0) is None


class _Echo:
    """Answers the prompt's own text."""

    def generate(self, requests: Sequence[Request], temperature: float, max_new_tokens: int) -> list[Sample]:
        return [
            Sample(r.prompt_ids, (*r.prompt_ids, EOS), (0.0,) * (len(r.prompt_ids) + 1), "stop", r.seed)
            for r in requests
        ]


def test_rates_by_domain_and_infrastructure_apart() -> None:
    suite = [HeldOut(f"tm:{text}:1", domain, [{"role": "user", "content": text}]) for text, domain in TASKS]

    def judge(answers: Sequence[Answer], attribution: Attribution) -> list[Verdict]:
        assert attribution.run == "run_eval"
        assert [encode(a.response) for a in answers[::2]] == [encode(text) for text, _ in TASKS]
        return [_verdict(answer.response, i) for i, answer in enumerate(answers)]

    evaluator = Evaluator(suite, judge, k=2, temperature=1.0, max_new_tokens=4, seed=0)
    scores = evaluator.run(_Echo(), Attribution("p", 3, "run_eval"))
    assert scores.avg == {"a": 0.75, "b": 0.0}
    assert scores.pass_at == {"a": 1.0, "b": 0.0}
    assert scores.passes == [1.0, 0.5, 0.0, None]
    assert scores.infrastructure == 1
    rises = evaluator.rises([1.0, 1.0, 0.0, 1.0], scores.passes)
    assert rises["a"]["mean"] == pytest.approx(0.25)


TASKS = [("good", "a"), ("half", "a"), ("bad", "b"), ("down", "b")]


def _verdict(text: str, place: int) -> Verdict:
    if text == "down" and place % 2:
        return Verdict("", "sandbox_error", None)
    right = text == "good" or (text == "half" and place % 2 == 0)
    return Verdict(f"v{place}", "verified" if right else "failed", float(right))
