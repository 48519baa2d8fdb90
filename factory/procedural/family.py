"""What the procedural families share: a numbered space of tasks, walked in a seeded order until it is used up.

A family says how many tasks its knobs allow (`size`) and makes the one with a given number (`item`). The order of the
numbers depends on the seed; what a number means does not, so two seeds meet the same tasks and admission sees it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from factory.contract import Candidate, Dropped, Made, Source
from factory.stream import SeededStream, permuted
from service.store.drafts import Answer, Message, Origin, VerifierChoice
from service.store.drafts import Source as SourceDraft

PLAIN, TERSE = "plain", "terse"
LICENCE = "Apache-2.0"  # the instances are Taskmill's own work

WORDING: Mapping[str, Any] = {
    "type": "string",
    "enum": [PLAIN, TERSE],
    "default": PLAIN,
    "description": "A sentence for a language model, or a few characters for a model that reads characters.",
}


class Item(NamedTuple):
    """One task of a family, before it is worded.

    `slots` fill the sentences of the family; `wrong` are near misses; `lazy` is what a careless reader might answer.
    """

    slots: Mapping[str, str]
    answer: str
    wrong: Sequence[str]
    lazy: Sequence[str] = ()


class Family:
    """The base of all families: a generator without a source, right by construction."""

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    needs_sandbox: ClassVar[bool] = False
    knobs_schema: ClassVar[Mapping[str, Any]]
    sentences: ClassVar[Sequence[str]]
    terse: ClassVar[str]
    verifier: ClassVar[str] = "numeric"

    @property
    def domain(self) -> str:
        return self.name

    def size(self, knobs: Mapping[str, Any]) -> int:
        """How many different tasks these knobs allow."""
        raise AttributeError(f"{type(self).__name__} has no size")

    def item(self, number: int, knobs: Mapping[str, Any]) -> Item:
        """The task with this number."""
        raise AttributeError(f"{type(self).__name__} has no items")

    def load(self, uri: str | None) -> Source | None:
        return None

    def candidates(
        self, source: Source | None, seed: int, knobs: Mapping[str, Any], start: int = 0
    ) -> Iterator[Made | Dropped]:
        size = self.size(knobs)
        for index in range(start, size):
            number = permuted(index, size, self.name, self.version, seed)
            yield Made(index, self._candidate(index, number, seed, knobs))

    def _candidate(self, index: int, number: int, seed: int, knobs: Mapping[str, Any]) -> Candidate:
        item = self.item(number, knobs)
        wrong: list[Answer] = [text for text in dict.fromkeys(item.wrong) if text != item.answer]
        lazy: list[Answer] = [text for text in dict.fromkeys(item.lazy) if text != item.answer]
        plain = knobs["wording"] == PLAIN
        return Candidate(
            domain=self.domain,
            prompt=[Message(role="user", content=self._worded(item, number, plain))],
            verifier=VerifierChoice(name=self.verifier, params={} if plain else {"slot": "raw"}),
            reference={"answer": item.answer},
            gold=[item.answer],
            nulls=lazy,
            mutants=wrong,
            equivalents=[f"\\boxed{{{item.answer}}}", f"Answer: {item.answer}"] if plain else [],
            source=SourceDraft(uri=f"taskmill:{self.name}", licence=LICENCE),
            features=dict(knobs),
            tags=[f"family:{self.name}"],
            task_type="procedural",
            origin=Origin(
                generator=self.name, generator_version=self.version, seed=seed, index=index, knobs=dict(knobs)
            ),
        )

    def _worded(self, item: Item, number: int, plain: bool) -> str:
        if not plain:
            return self.terse.format(**item.slots)
        # The sentence belongs to the number, not to the seed: the same task is worded alike wherever it is met.
        return SeededStream(self.name, self.version, "wording", number).pick(self.sentences).format(**item.slots)


def knob(low: int, high: int, default: int, description: str) -> dict[str, Any]:
    """The schema of a whole-number knob."""
    return {"type": "integer", "minimum": low, "maximum": high, "default": default, "description": description}


def choice(options: Sequence[str], description: str) -> dict[str, Any]:
    """The schema of a knob with named options; the first is the default."""
    return {"type": "string", "enum": list(options), "default": options[0], "description": description}


def schema(**knobs: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a family's knobs; every family has the wording."""
    return {"type": "object", "additionalProperties": False, "properties": {**knobs, "wording": WORDING}}


class Range(NamedTuple):
    """The whole numbers of some number of digits: `low` to `low + size − 1`."""

    low: int
    size: int


def of_digits(digits: int) -> Range:
    """Numbers with exactly so many digits; with one digit, zero belongs to them."""
    return Range(0, 10) if digits == 1 else Range(10 ** (digits - 1), 9 * 10 ** (digits - 1))


def arrangements(count: int, length: int) -> int:
    """How many orders of `length` different ones of `count` things there are."""
    total = 1
    for taken in range(length):
        total *= count - taken
    return total


def arrangement(number: int, count: int, length: int) -> list[int]:
    """The order with this number, as places 0 … `count` − 1, all different."""
    taken: list[int] = []
    for position in range(length):
        number, place = divmod(number, count - position)
        for earlier in sorted(taken):
            place += earlier <= place
        taken.append(place)
    return taken


def numbers_near(answer: int) -> list[str]:
    """Near misses of a whole number: one off, ten off, the other sign, two digits swapped."""
    text = str(abs(answer))
    swapped = [text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(len(text) - 1)]
    return [str(answer + 1), str(answer - 1), str(answer + 10), str(-answer), *swapped[:1]]
