"""The statistics record as pages read it: numbers with their tags, counts by a dimension. Pages own no query."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from service.auth.principal import Principal
from service.dashboard.number import Number, read, timestamp
from service.stats.record import build
from service.store.session import ReadSession
from service.words import Scope


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `data` is what `GET /v1/stats` answers."""

    data: Mapping[str, Any]

    @property
    def as_of(self) -> datetime:
        return timestamp(self.data.get("as_of")) or datetime.now(UTC)

    @property
    def method(self) -> str:
        """The method of the counts of tasks, which the frame of a page names."""
        return str(self.facet("tasks").get("method") or "exact")

    def facet(self, name: str) -> Mapping[str, Any]:
        found = self.data.get(name)
        return found if isinstance(found, Mapping) else {}

    def number(self, facet: str, *path: str, percent: bool = False) -> Number:
        """One number of a facet, by its path."""
        found: Any = self.facet(facet)
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return read(found, {"as_of": self.as_of} | dict(self.facet(facet)), percent=percent)

    def counts(self, facet: str, *path: str) -> Mapping[str, float]:
        """Counts by the values of one dimension, the largest first."""
        found: Any = self.facet(facet)
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return {}
        numbers = {str(name): read(value, {}).value for name, value in found.items()}
        kept = {name: value for name, value in numbers.items() if value is not None}
        return dict(sorted(kept.items(), key=lambda item: (-item[1], item[0])))


def load(db: ReadSession, viewer: Principal) -> Record:
    """The record as this viewer may see it: without `holdout:read` no count holds a holdout task."""
    return Record(build(db, holdout=viewer.may(Scope.HOLDOUT_READ)))
