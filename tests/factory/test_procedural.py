"""The procedural families: right by an independent second implementation, pure, and exhausted where they end."""

import itertools
import json
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from factory.contract import BadKnobs, Dropped, Made, Source
from factory.gates.case import case_of
from factory.knobs import filled
from factory.procedural.registry import FAMILIES
from factory.stream import SeededStream, permuted
from service.store.admission import prepare
from verifiers.contract import Outcome
from verifiers.engine import Engine

ROOT = Path(__file__).parents[2]


def numbers(prompt: str) -> list[int]:
    return [int(text) for text in re.findall(r"\d+", prompt)]


def by_words(prompt: str) -> str:
    """The answer, found again from the words of the prompt alone, in another way than the families find it."""
    found = numbers(prompt)
    if prompt.startswith("rev ") or any(word in prompt for word in ("backwards", "Reverse", "Spell")):
        (text,) = re.findall(r"rev (\w+)=|Write (\w+) back|characters of (\w+)\.|Spell (\w+) from", prompt)
        return reduce(lambda done, letter: letter + done, next(filter(None, text)), "")
    if prompt.startswith("cnt ") or "occur in" in prompt or "characters in" in prompt:
        (groups,) = re.findall(r"cnt (\w) (\w+)=|does (\w) occur in (\w+)\?|the (\w) characters in (\w+)\.", prompt)
        symbol, text = filter(None, groups)
        return str(sum(letter == symbol for letter in text))
    if any(word in prompt for word in ("Sort", "sort", "into", "desc")):
        order: Callable[[int, int], bool] = operator.gt if "desc" in prompt else operator.lt
        done: list[int] = []
        for value in found:
            place = next((i for i, other in enumerate(done) if order(value, other)), len(done))
            done.insert(place, value)
        return " ".join(map(str, done))
    if any(word in prompt for word in ("largest", "smallest", "max", "min")):
        better = operator.gt if "largest" in prompt or "max" in prompt else operator.lt
        return str(reduce(lambda a, b: a if better(a, b) else b, found))
    if any(word in prompt for word in ("%", "remainder", "modulo")):
        a, m = found
        while a >= m:
            a -= m * max(1, a // (2 * m))
        return str(a)
    if any(word in prompt for word in ("Subtract", "larger", "-")):
        a, b = found
        return str(max(a, b) - min(a, b))
    if "*" in prompt or "product" in prompt:
        return str(sum(reduce(lambda total, factor: [sum(total)] * factor, found[1:], [found[0]])))
    return str(reduce(operator.add, found))


SAMPLES: Mapping[str, list[dict[str, Any]]] = {
    "math.add": [{}, {"digits": 1, "terms": 4}, {"digits": 9}],
    "math.subtract": [{}, {"digits": 1}, {"digits": 7}],
    "math.multiply": [{}, {"digits": 1, "terms": 3}],
    "math.modulo": [{}, {"digits": 5, "modulus": 100}],
    "math.compare": [{}, {"ask": "smallest", "terms": 5}, {"digits": 6}],
    "list.sort": [{}, {"order": "descending", "digits": 2, "length": 6}],
    "text.reverse": [{}, {"alphabet": "letters", "length": 12}],
    "text.count": [{}, {"alphabet": "letters", "letters": 5, "length": 20}],
}
CASES = [
    (name, {**knobs, "wording": wording})
    for name, samples in SAMPLES.items()
    for knobs in samples
    for wording in ("plain", "terse")
]


def made(name: str, knobs: Mapping[str, Any], seed: int = 0, n: int = 200, start: int = 0) -> list[Made]:
    family = FAMILIES[name]
    items = family.candidates(None, seed, filled(family.knobs_schema, knobs), start)
    return [item for item in itertools.islice(items, n) if isinstance(item, Made)]


def test_every_family_has_samples_here() -> None:
    assert set(SAMPLES) == set(FAMILIES)


@pytest.mark.parametrize(("name", "knobs"), CASES)
def test_a_second_implementation_agrees(name: str, knobs: dict[str, Any]) -> None:
    for seed in range(3):
        for item in made(name, knobs, seed):
            prompt = item.candidate.prompt[0].content
            assert by_words(prompt) == item.candidate.reference["answer"], prompt


@pytest.mark.parametrize(("name", "knobs"), CASES)
def test_golds_pass_and_near_misses_fail(name: str, knobs: dict[str, Any], text_engine: Engine) -> None:
    """Golds and their other forms are verified; near misses, lazy answers and the prompt itself are not."""
    for item in made(name, knobs, n=25):
        found = item.candidate
        right = [*found.gold, *found.equivalents]
        wrong = [*found.mutants, *found.nulls, found.prompt[0].content, ""]
        verdicts = text_engine.verify_many([case_of(found, answer) for answer in [*right, *wrong]])
        outcomes = [verdict.outcome is Outcome.VERIFIED for verdict in verdicts]
        assert outcomes == [True] * len(right) + [False] * len(wrong), (found.prompt, right, wrong, outcomes)


@pytest.mark.parametrize(("name", "knobs"), CASES)
def test_each_knob_is_a_feature_and_no_task_comes_twice(name: str, knobs: dict[str, Any]) -> None:
    items = made(name, knobs, n=300)
    assert len({prepare(item.candidate).identity_hash for item in items}) == len(items)
    assert all(item.candidate.features == filled(FAMILIES[name].knobs_schema, knobs) for item in items)
    assert all(item.candidate.domain == name for item in items)


def test_a_small_space_is_used_up_and_then_ends() -> None:
    """Ten one-digit numbers give 55 differences, each once, in an order that the seed decides."""
    first, other = made("math.subtract", {"digits": 1}, 0), made("math.subtract", {"digits": 1}, 1)
    assert len(first) == len(other) == 55
    texts = [item.candidate.reference["answer"] + item.candidate.prompt[0].content for item in first]
    assert texts != [item.candidate.reference["answer"] + item.candidate.prompt[0].content for item in other]
    assert {prepare(item.candidate).identity_hash for item in first} == {
        prepare(item.candidate).identity_hash for item in other
    }


def test_a_cursor_resumes_the_sequence() -> None:
    whole = made("text.reverse", {}, 5, n=60)
    assert made("text.reverse", {}, 5, n=20, start=40) == whole[40:]


def test_terse_prompts_are_short() -> None:
    for name in FAMILIES:
        assert all(len(item.candidate.prompt[0].content) <= 24 for item in made(name, {"wording": "terse"}, n=30))


def test_bad_knobs_are_named() -> None:
    schema = FAMILIES["math.add"].knobs_schema
    with pytest.raises(BadKnobs, match="digitz"):
        filled(schema, {"digitz": 3})
    with pytest.raises(BadKnobs, match="digits"):
        filled(schema, {"digits": 0})
    with pytest.raises(BadKnobs, match="digits"):
        filled(schema, {"digits": True})
    assert filled(schema, {}) == {"digits": 2, "terms": 2, "wording": "plain"}


PRINT_HASHES = """
import itertools, json
from factory.contract import Made
from factory.generators import GENERATORS
from factory.knobs import filled
from service.store.admission import prepare
found = {}
for name, generator in GENERATORS.items():
    source = generator.load(None)
    for seed in (0, 1, 99):
        items = generator.candidates(source, seed, filled(generator.knobs_schema, {}))
        found[f"{name} {seed}"] = [
            prepare(item.candidate).content_hash if isinstance(item, Made) else item.code
            for item in itertools.islice(items, 40)
        ]
print(json.dumps(found))
"""


def test_generators_are_pure(tmp_path: Path) -> None:
    """The same call makes the same tasks in processes with another hash seed, time zone, locale and folder."""
    answers = []
    for surroundings in (
        {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        {"PYTHONHASHSEED": "77", "TZ": "Asia/Kathmandu", "LC_ALL": "C"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", PRINT_HASHES],
            env=os.environ | surroundings | {"PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answers.append(json.loads(done.stdout))
    assert answers[0] == answers[1]
    assert all(answers[0].values())


@given(size=st.integers(1, 3000), seed=st.integers(0, 5))
@hypothesis_settings(max_examples=30, deadline=None)
def test_a_permutation_meets_every_number_once(size: int, seed: int) -> None:
    assert sorted(permuted(index, size, "words", seed) for index in range(size)) == list(range(size))


@given(size=st.integers(2, 10**80), words=st.text(max_size=5))
@hypothesis_settings(max_examples=30, deadline=None)
def test_a_permutation_of_a_huge_space_stays_inside(size: int, words: str) -> None:
    found = [permuted(index, size, words) for index in range(min(size, 20))]
    assert len(set(found)) == len(found)
    assert all(0 <= value < size for value in found)


def test_the_stream_is_even_and_does_not_depend_on_earlier_draws_elsewhere() -> None:
    counts = [0] * 7
    stream = SeededStream("even", 1)
    for _ in range(7000):
        counts[stream.below(7)] += 1
    assert all(850 < count < 1150 for count in counts)
    assert [SeededStream("a", 1).below(10**30) for _ in range(2)] == [SeededStream("a", 1).below(10**30)] * 2
    assert SeededStream("a", 1).sample(range(10), 10) != list(range(10))


def test_families_need_no_source() -> None:
    source: Source | None = FAMILIES["math.add"].load("anything")
    assert source is None
    assert not [
        item
        for item in FAMILIES["math.add"].candidates(
            None, 0, filled(FAMILIES["math.add"].knobs_schema, {"digits": 1}), 100
        )
        if isinstance(item, Dropped)
    ]
