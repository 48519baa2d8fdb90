"""A run's page shows the curves that matter first and loses none."""

from service.dashboard import curves

METRICS = {
    "reward/mean": [(0, 0.1), (1, 0.3)],
    "reward/math.add/mean": [(0, 0.0), (1, 0.5)],
    "reward/text.reverse/mean": [(0, 0.2), (1, 0.1)],
    "group/effective_share": [(0, 0.5), (1, 0.7)],
    "outcome/verified_frac": [(0, 0.1), (1, 0.4)],
    "outcome/failed_frac": [(0, 0.9), (1, 0.5)],
    "outcome/sandbox_error_frac": [(0, 0.0), (1, 0.1)],
    "eval/heldout/avg@4": [(0, 0.1)],
    "eval/heldout/pass@4": [(0, 0.3)],
    "eval/infrastructure": [(0, 0.0)],
    "optim/lr": [(0, 1e-4), (1, 1e-4)],
    "something/else": [(1, 5.0)],
}


def href(step: int) -> str:
    return f"/runs/x?step={step}"


def test_every_curve_is_somewhere_on_the_page() -> None:
    shown = {panel.title for panel in curves.panels(METRICS, href)}
    assert {"Reward, mean", "Reward by family", "Held-out pass rate", "Groups with a signal", "Outcomes"} <= shown
    assert {panel.title for panel in curves.others(METRICS, href)} == {
        "eval/infrastructure",
        "optim/lr",
        "something/else",
    }


def test_a_part_of_a_name_finds_curated_curves_too() -> None:
    assert [panel.title for panel in curves.others(METRICS, href, "MEAN")] == [
        "reward/math.add/mean",
        "reward/mean",
        "reward/text.reverse/mean",
    ]


def test_families_and_outcomes_keep_their_names() -> None:
    panels = {panel.title: panel.chart for panel in curves.panels(METRICS, href)}
    assert panels["Reward by family"].twin.columns == ("step", "math.add", "text.reverse")
    assert panels["Outcomes"].twin.columns == ("step", "verified", "failed", "sandbox error")


def test_the_values_of_a_step_are_those_of_that_step() -> None:
    assert ("something/else", 5.0) in curves.at_step(METRICS, 1)
    assert "something/else" not in dict(curves.at_step(METRICS, 0))


def test_a_run_is_known_by_its_reward() -> None:
    assert curves.headline(METRICS) == "reward/mean"
    assert curves.headline({"optim/loss": 3}) == "optim/loss"
    assert curves.headline(()) is None
