"""The filters of the task list, between the query string and the store: the names of `GET /v1/tasks`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from service.store.tasks import Filters


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """What a reader chose; an empty text is no choice."""

    status: str = ""
    domain: str = ""
    split: str = ""
    verifier: str = ""
    family: str = ""
    source: str = ""
    origin: str = ""
    licence: str = ""
    tag: str = ""
    q: str = ""

    @property
    def chosen(self) -> Mapping[str, str]:
        """The fields with a choice, for addresses."""
        return {name: value for name, value in asdict(self).items() if value}

    def having(self, **fields: str) -> "TaskFilter":
        """The same choice with some fields changed."""
        return replace(self, **fields)

    def for_store(self) -> Filters:
        """The question to the store."""
        lists = {name: (value,) for name, value in self.chosen.items() if name != "q"}
        return Filters(**lists, q=self.q or None)  # type: ignore[arg-type]  # each field is a sequence of text


def read(query: Mapping[str, str]) -> TaskFilter:
    """The filter of a query string; other parameters are none of its business, blanks around a value are dropped."""
    names = TaskFilter.__dataclass_fields__
    return TaskFilter(**{name: value.strip()[:2000] for name, value in query.items() if name in names})
