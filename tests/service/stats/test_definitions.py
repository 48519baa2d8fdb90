import pytest

from service.stats.definitions import rates, wilson


@pytest.mark.parametrize(
    ("k", "n", "lo", "hi"),
    [
        (0, 10, 0, 0.27753),
        (0, 100, 0, 0.03699),
        (0, 300, 0, 0.01264),
        (1, 10, 0.01788, 0.40415),
        (3, 100, 0.01025, 0.08452),
        (5, 8, 0.30574, 0.86316),
        (50, 100, 0.40383, 0.59617),
    ],
)
def test_wilson_intervals(k: int, n: int, lo: float, hi: float) -> None:
    found = wilson(k, n)
    assert found is not None
    assert found == pytest.approx((lo, hi), abs=5e-6)


def test_nothing_measured_has_no_interval() -> None:
    assert wilson(0, 0) is None


def test_invalid_outcomes_stand_beside_and_never_inside() -> None:
    found = rates(
        {"verified": 3, "failed": 2, "candidate_limit": 1, "sandbox_error": 4, "judge_error": 1, "skipped": 2}
    )
    assert found == (3, 6, 5, 2)
    assert found.invalid == 7
