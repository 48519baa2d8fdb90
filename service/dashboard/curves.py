"""Which curves a run's page shows, and in what order: known names in their sections, all others after them.

Names are those of the trainer: `reward/mean`, `reward/{domain}/mean`, `outcome/{name}_frac`, `group/effective_share`,
`eval/{suite}/avg@k`, and so on. A trainer of another make that posts other names gets the second half of the page.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.dashboard.charts.area import area
from service.dashboard.charts.chart import Chart
from service.dashboard.charts.line import Series, line
from service.dashboard.outcomes import OUTCOME_TONES

Points = Sequence[tuple[int, float]]
StepHref = Callable[[int], str]

TONES = tuple(f"tone-{n}" for n in range(1, 9))


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure of a run's page."""

    title: str
    chart: Chart
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """How one panel collects its curves: names that match, and the label that the match gives."""

    title: str
    pattern: re.Pattern[str]
    lo: float | None = None
    hi: float | None = None
    stacked: bool = False


SHAPES = (
    Shape("Reward, mean", re.compile(r"reward/(mean)|reward_(mean)")),
    Shape("Held-out pass rate", re.compile(r"eval/(.+)/(?:avg@\d+|pass_rate|mean)"), 0.0, 1.0),
    Shape("Held-out pass@k: any of k is right", re.compile(r"eval/(.+/pass@\d+)"), 0.0, 1.0),
    Shape("Reward by family", re.compile(r"reward/(.+)/mean|pass_rate/(.+)|family/(.+)")),
    Shape("Groups with a signal", re.compile(r"group/(effective_share|zero_std_frac)"), 0.0, 1.0),
    Shape("Outcomes", re.compile(r"outcome/(.+?)_frac|outcome/(.+)"), stacked=True),
    Shape("Loss", re.compile(r"(?:optim/|sft/|policy/|grpo/)?(loss)|(sft)/loss")),
    Shape("Length of answers", re.compile(r"len/(mean|max)")),
    Shape("Stability", re.compile(r"policy/(entropy|kl_ref)|(entropy)|mismatch/(kl_mean)")),
)


def panels(metrics: Mapping[str, Points], step_href: StepHref) -> list[Panel]:
    """The curated figures that have data."""
    found: list[Panel] = []
    for shape in SHAPES:
        series = _series(shape, metrics)
        if not series:
            continue
        if shape.stacked:
            chart = area(series, title=shape.title)
        else:
            chart = line(series, title=shape.title, lo=shape.lo, hi=shape.hi, step_href=step_href)
        found.append(Panel(shape.title, chart, wide=not found))
    return found


def others(metrics: Mapping[str, Points], step_href: StepHref, wanted: str = "") -> list[Panel]:
    """Every curve on its own, by name; `wanted` is a part of the name. The curated ones too, when asked for by name."""
    names = [name for name in sorted(metrics) if (wanted.lower() in name.lower() if wanted else not _curated(name))]
    return [
        Panel(
            name,
            line([Series(name, _floats(metrics[name]), "tone-1")], title=name, height=110, step_href=step_href),
        )
        for name in names
    ]


def at_step(metrics: Mapping[str, Points], step: int) -> list[tuple[str, float]]:
    """Every value of one step, by name."""
    return [(name, value) for name in sorted(metrics) for at, value in metrics[name] if at == step]


def headline(names: Iterable[str]) -> str | None:
    """The name of the curve that stands for a run in a list: reward, else a pass rate, else a loss."""
    for pattern in (re.compile(r"reward/mean|reward_mean"), re.compile(r"eval/.+"), re.compile(r".*loss")):
        for name in sorted(names):
            if pattern.fullmatch(name):
                return name
    return None


def rank(name: str) -> int:
    """The place of a curve on the page: that of its section, those of none last."""
    owner = _owner(name)
    return SHAPES.index(owner) if owner else len(SHAPES)


def _series(shape: Shape, metrics: Mapping[str, Points]) -> list[Series]:
    found: list[tuple[str, tuple[tuple[float, float], ...]]] = []
    for name in sorted(metrics, key=_order):
        match = shape.pattern.fullmatch(name)
        if match and _owner(name) is shape:
            label = next(group for group in match.groups() if group)
            found.append((label, _floats(metrics[name])))
    return [
        Series(label.replace("_", " "), points, OUTCOME_TONES.get(label) or TONES[index % len(TONES)])
        for index, (label, points) in enumerate(found)
    ]


def _owner(name: str) -> Shape | None:
    return next((shape for shape in SHAPES if shape.pattern.fullmatch(name)), None)


def _curated(name: str) -> bool:
    return _owner(name) is not None


def _order(name: str) -> tuple[int, str]:
    """Outcomes stand in the order of the vocabulary, everything else by name."""
    bare = name.removeprefix("outcome/").removesuffix("_frac")
    known = tuple(OUTCOME_TONES)
    return (known.index(bare) if bare in known else len(known), name)


def _floats(points: Points) -> tuple[tuple[float, float], ...]:
    return tuple((float(step), float(value)) for step, value in points)
