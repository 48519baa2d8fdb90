"""Task text is hostile: nothing of it becomes markup, nothing of it hides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

from service.dashboard.hostile_text import MOST, head, visible


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a\u202eb", "U+202E"),
        ("a\u2066b", "U+2066"),
        ("a\u200bb", "U+200B"),
        ("a\ufeffb", "U+FEFF"),
        ("a\u00adb", "U+00AD"),
        ("a\x00b", "U+0000"),
        ("a\x1b[31mb", "U+001B"),
        ("a\ud800b", "U+D800"),
        ("a\U000e0041b", "U+E0041"),
        ("a\u2028b", "U+2028"),
        ("a\rb", "U+000D"),
    ],
)
def test_characters_without_a_shape_are_named(text: str, name: str) -> None:
    shown = visible(text)
    assert f">{name}</span>" in shown
    assert text[1] not in shown


def test_markup_in_a_text_is_text() -> None:
    assert visible("<script>alert(1)</script>\u202e").startswith("&lt;script&gt;")


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_visible_text_is_only_escaped(text: str) -> None:
    assert visible(text) == escape(text)


@settings(max_examples=60)
@given(st.text())
def test_the_result_can_always_be_sent(text: str) -> None:
    visible(text).encode()
    head(text).encode()


def test_a_ten_megabyte_line_is_cut() -> None:
    assert len(visible("x" * 10_000_000)) == MOST
    assert len(head("y " * 5_000_000)) < 200


def test_lines_and_tabs_of_a_text_stay() -> None:
    assert visible("a\n\tb") == "a\n\tb"
    assert head("a\n\n  b") == "a b"
