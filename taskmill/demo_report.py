"""What the demo shows: a progress bar for each source, the funnel, the pass rates."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

console = Console(width=None if sys.stdout.isatty() else 120)
"""Wide enough for the tables when the output goes to a file."""


class Rates(NamedTuple):
    """Held-out pass rates of one family, each from 0 to 1."""

    family: str
    untrained: float
    after_sft: float
    after_grpo: float


class Report:
    """Progress of the generate jobs, by job id."""

    def __init__(self) -> None:
        self._bars: Progress | None = None
        self._bar_of: dict[str, TaskID] = {}

    @contextmanager
    def progress(self, jobs: Mapping[str, tuple[str, int]]) -> Iterator[None]:
        """Show a bar for each job `id: (name, wanted)` while the block runs."""
        columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console.print("Making tasks, each through the gates in the sandbox:")
        with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
            self._bars = bars
            self._bar_of = {job: bars.add_task(name, total=wanted) for job, (name, wanted) in jobs.items()}
            yield
        self._bars = None

    def advance(self, job: Mapping[str, Any]) -> None:
        """Move the bar of a job to what its row says."""
        if self._bars is not None:
            self._bars.update(self._bar_of[job["id"]], completed=job["counts"].get("active", 0))


def show_making(jobs: Sequence[Mapping[str, Any]]) -> None:
    """The funnel: candidates, duplicates, rejects of each gate, active tasks; one row for each source."""
    gates = sorted({gate for job in jobs for gate in job["counts"] if gate[0] == "G"})
    heads = ("source", "extracted", "duplicates", *(f"{gate} rejects" for gate in gates), "active", "ended by")
    table = Table(title="Tasks made, gated and active", title_justify="left")
    for head in heads:
        table.add_column(head, no_wrap=True, justify="left" if head in {"source", "ended by"} else "right")
    total = [0] * (len(gates) + 3)
    for job in jobs:
        counts = job["counts"]
        row = [counts.get("candidates", 0), counts.get("duplicates", 0)]
        row += [counts.get(gate, {}).get("fail", 0) for gate in gates] + [counts.get("active", 0)]
        total = [a + b for a, b in zip(total, row, strict=True)]
        ended = (job["result"] or {}).get("stop_reason", "")
        table.add_row(job["params"]["generator"], *map(str, row), str(ended).replace("_", " "))
    table.add_section()
    table.add_row("all", *map(str, total))
    console.print(table)
    for job in jobs:
        for reason, count in job["counts"].get("dropped", {}).items():
            console.print(f"{job['params']['generator']}: {count} sources made no task ({reason.replace('_', ' ')})")


def show_rates(rates: Sequence[Rates]) -> None:
    """Held-out pass rates before SFT, after SFT and after GRPO."""
    table = Table("held-out pass rate", "before SFT", "after SFT", "after GRPO", "GRPO gained")
    for row in rates:
        gain = f"{(row.after_grpo - row.after_sft) * 100:+.1f} points"
        table.add_row(row.family, f"{row.untrained:.1%}", f"{row.after_sft:.1%}", f"{row.after_grpo:.1%}", gain)
    console.print(table)
