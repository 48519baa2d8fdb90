"""Tasks made of the functions of an installed package."""

import itertools
from collections import Counter
from typing import Any

import pytest

from factory.contract import Dropped, Made, Source, SourceMissing
from factory.extract.docstring_tasks import DocstringTasks
from factory.extract.examples import read_examples
from factory.extract.package_names import NotSelfContained, Package
from factory.extract.package_source import load_package
from factory.knobs import filled
from service.store.admission import prepare

GENERATOR = DocstringTasks()


@pytest.fixture(scope="module")
def source() -> Source:
    pytest.importorskip("more_itertools", reason="more_itertools is not installed: pip install 'taskmill[demo]'")
    found = GENERATOR.load(None)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def items(source: Source) -> list[Made | Dropped]:
    return list(GENERATOR.candidates(source, 0, filled(GENERATOR.knobs_schema, {})))


def of_function(items: list[Made | Dropped], name: str) -> Made:
    return next(
        item for item in items if isinstance(item, Made) and item.candidate.verifier.params["entries"] == [name]
    )


def code_of(answer: Any) -> str:
    return str(answer).removeprefix("```python\n").removesuffix("```")


def test_most_functions_become_tasks_and_the_rest_say_why(items: list[Made | Dropped]) -> None:
    kinds = Counter(type(item).__name__ for item in items)
    assert kinds["Made"] >= 100
    assert {item.code for item in items if isinstance(item, Dropped)} <= {"no_usable_example", "not_self_contained"}
    assert [item.index for item in items] == list(range(len(items)))


def test_the_source_is_named_with_version_licence_and_lines(items: list[Made | Dropped], source: Source) -> None:
    for item in items:
        if isinstance(item, Made):
            made = item.candidate.source
            assert made is not None
            assert made.uri == source.uri == "pkg:pypi/more-itertools@11.2.1"
            assert made.licence == "MIT"
            assert made.span is not None
            path, _, lines = made.span.partition("#")
            first, last = (int(text.strip("L")) for text in lines.split("-"))
            name = item.candidate.verifier.params["entries"][0]
            assert f"def {name}(" in "\n".join(source.files[path].splitlines()[first - 1 : last])


def test_prompts_show_no_example_and_golds_stand_alone(items: list[Made | Dropped]) -> None:
    """Trap: a docstring in the prompt shows its doctests, and the package itself solves the task."""
    for item in items:
        if isinstance(item, Made):
            prompt = item.candidate.prompt[0].content
            assert ">>>" not in prompt
            assert f"Write the Python function `{item.candidate.verifier.params['entries'][0]}`" in prompt
            assert "import more_itertools" not in code_of(item.candidate.gold[0])
            assert "from more_itertools" not in item.candidate.reference["setup"]


def test_golds_pass_their_examples_and_stubs_do_not(items: list[Made | Dropped]) -> None:
    """Run here, outside of any sandbox: the package is a trusted one, the gates do it again in boxes."""
    for item in items:
        if not isinstance(item, Made):
            continue
        found = item.candidate
        (name,) = found.verifier.params["entries"]
        assert run(code_of(found.gold[0]), name, found.reference) is None, name
        for null in found.nulls[1:]:
            assert run(code_of(null), name, found.reference) is not None, name


def run(code: str, name: str, reference: dict[str, Any]) -> BaseException | None:
    candidate: dict[str, Any] = {}
    space: dict[str, Any] = {}
    try:
        exec(code, candidate)
        exec(reference["setup"], space)
        space[name] = candidate[name]
        for statement in reference["asserts"]:
            exec(statement, space)
    except Exception as error:
        return error
    return None


def test_half_of_the_examples_can_be_shown(source: Source) -> None:
    knobs = filled(GENERATOR.knobs_schema, {"examples": "half"})
    items = list(itertools.islice(GENERATOR.candidates(source, 3, knobs), 60))
    shown = [item for item in items if isinstance(item, Made)]
    assert len(shown) >= 20
    for item in shown:
        prompt = item.candidate.prompt[0].content
        assert ">>>" in prompt
        assert item.candidate.features["examples"] == "half"
        hidden = [text for text in item.candidate.reference["asserts"] if text.startswith("assert (")]
        assert not any(f">>> {text.removeprefix('assert (').rpartition(') ==')[0]}\n" in prompt for text in hidden)
    other = [item for item in GENERATOR.candidates(source, 4, knobs, 0) if isinstance(item, Made)][: len(shown)]
    assert [prepare(a.candidate).content_hash for a in shown] != [prepare(b.candidate).content_hash for b in other]


def test_a_package_that_is_not_here_is_named_with_the_command() -> None:
    with pytest.raises(SourceMissing, match="pip install no-such-package-here"):
        load_package("pkg:pypi/no-such-package-here")
    with pytest.raises(SourceMissing, match=r"pip install more-itertools==0\.1"):
        load_package("pkg:pypi/more-itertools@0.1")
    with pytest.raises(SourceMissing, match="package URL"):
        load_package("more-itertools")


DOCSTRING = """Doubles.

    >>> from operator import add
    >>> double(2)
    4
    >>> it = double_all([1, 2])
    >>> next(it)
    2
    >>> next(it)
    4

And fails:

    >>> double("x")  # never
    Traceback (most recent call last):
      ...
    ValueError: not x

    >>> print(double(3))
    6
    >>> double(object)
    <object at 0x12...>
    >>> double(None)
    >>> double(0) is None
    False
"""


def test_examples_become_assertions() -> None:
    found = read_examples(DOCSTRING)
    assert found.prose == "Doubles.\n\nAnd fails:"
    assert found.imports == ("from operator import add",)
    assert [block.code for block in found.blocks] == [
        "assert (double(2)) == 4",
        "it = double_all([1, 2])\nassert (next(it)) == 2\nassert (next(it)) == 4",
        "try:\n    double('x')\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError('no ValueError')",
        "assert (double(0) is None) is False",
    ]
    assert found.dropped == 2


def test_examples_that_depend_on_a_dropped_one_are_dropped_too() -> None:
    found = read_examples(">>> x = f(1)\n>>> x\n1\n>>> x.add(print(2))\n2\n>>> x\n[1, 2]\n")
    assert [block.code for block in found.blocks] == ["x = f(1)\nassert (x) == 1"]


def test_a_function_is_gathered_with_what_it_needs() -> None:
    package = Package(
        {
            "p/__init__.py": "from .a import *\n",
            "p/a.py": "import math, os\nfrom .b import helper, SIZE\n\ndef f(x): return helper(math.ceil(x)) + SIZE",
            "p/b.py": "from functools import reduce, partial\nSIZE = 3\nSPARE = 4\n"
            "def helper(y): return reduce(max, y)",
        }
    )
    start = package.define("p.a", "f")
    assert start is not None
    text = package.closure([start])
    assert text.splitlines()[:2] == ["from functools import reduce", "import math"]
    assert text.index("SIZE = 3") < text.index("def helper") < text.index("def f(x)")
    assert "SPARE" not in text
    assert "partial" not in text
    with pytest.raises(NotSelfContained):
        package.closure([start], without=frozenset({"helper"}))
