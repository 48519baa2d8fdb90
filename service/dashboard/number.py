"""The number tag: every number on a page says how it was had, when, over what; a partial one says so.

A number of the statistics record is `{value, method, error, as_of, scope, n_scanned, elapsed_ms}`; what the number
leaves out is inherited from its block.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.dashboard.charts.ticks import compact

UNKNOWN = "—"


@dataclass(frozen=True, slots=True)
class Number:
    """One number with its method, time and scope. `value` None is unknown, never 0; `reason` says why."""

    value: float | None
    as_of: datetime | None
    method: str = "exact"
    scope: str = "live data"
    percent: bool = False
    reason: str = ""
    error: Mapping[str, Any] | None = None
    n_scanned: int | None = None
    elapsed_ms: float | None = None

    @property
    def text(self) -> str:
        """The value for reading."""
        if self.value is None or not math.isfinite(self.value):
            return UNKNOWN
        if self.percent:
            share = 100 * self.value
            return f"{share:.1f} %" if 0 < share < 99.95 else f"{share:.0f} %"
        return compact(self.value)

    @property
    def tag(self) -> str:
        """The method in a word or two: `exact`, `≈ ±4.8 %`, `10,000+`, `95 %: 31–86 %`."""
        if self.value is None:
            return self.reason or "unknown"
        if self.error is None:
            return self.method
        lo, hi, kind = self.error.get("lo"), self.error.get("hi"), self.error.get("kind")
        if kind == "relative" and hi is not None:
            return f"≈ ±{100 * float(hi):.1f} %"
        if kind == "at_least" and lo is not None:
            return f"{float(lo):,.0f}+"
        if lo is None or hi is None:
            return self.method
        if self.percent:
            return f"95 %: {100 * float(lo):.0f}–{100 * float(hi):.0f} %"
        return f"95 %: {compact(float(lo))}–{compact(float(hi))}"

    @property
    def about(self) -> str:
        """Time, scope, rows and cost, for the hover text."""
        parts = [f"as of {moment(self.as_of)}", self.scope]
        if self.n_scanned is not None:
            parts.append(f"{self.n_scanned:,} rows read")
        if self.elapsed_ms is not None:
            parts.append(f"{self.elapsed_ms:.0f} ms")
        return " · ".join(part for part in parts if part)


def read(found: Any, block: Mapping[str, Any], *, percent: bool = False, scope: str = "live data") -> Number:
    """A number of the record, with what it inherits from its block; a bare value is exact."""
    as_of = timestamp(block.get("as_of"))
    if not isinstance(found, Mapping):
        value = float(found) if isinstance(found, int | float) else None
        return Number(value, as_of, percent=percent, scope=scope, reason="" if value is not None else "not measured")
    value = found.get("value")
    return Number(
        float(value) if isinstance(value, int | float) else None,
        timestamp(found.get("as_of")) or as_of,
        method=str(found.get("method") or "exact"),
        scope=scope,
        percent=percent,
        reason=str(found.get("reason") or ("" if value is not None else "not measured")),
        error=found.get("error"),
        n_scanned=found.get("n_scanned"),
        elapsed_ms=found.get("elapsed_ms"),
    )


def timestamp(value: Any) -> datetime | None:
    """A time of the record, which is a datetime or RFC 3339 text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return value if isinstance(value, datetime) else None


def moment(value: datetime | None) -> str:
    """A time of day with its date, UTC."""
    return value.strftime("%Y-%m-%d %H:%M:%S UTC") if value else "an unknown time"
