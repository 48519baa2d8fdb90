import time

import pytest

from verifiers.code_answer import code_in, fences
from verifiers.contract import Finding, Outcome


def code(text: object, language: str = "python", **params: object) -> str:
    found = code_in(text, params, language)  # type: ignore[arg-type]
    assert isinstance(found, str), found
    return found


def outcome(text: object, **params: object) -> tuple[str, str]:
    found = code_in(text, params, "python")  # type: ignore[arg-type]
    assert isinstance(found, Finding)
    return found.outcome, found.code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\na = 1\n```", "a = 1\n"),
        ("```\na = 1\n```", "a = 1\n"),
        ("first\n```py\na\n```\nbetter:\n```python3\nb\n```\nend", "b\n"),
        ("```python\na\n```\n```json\n{}\n```", "a\n"),
        ("a = 1\nprint(a)", "a = 1\nprint(a)"),
        ("```json\n{}\n```", "```json\n{}\n```"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("~~~python\na\n~~~", "a\n"),
        ("```python\na\n", "a\n"),
        ("1. do\n   ```python\n   if a:\n       b\n   ```", "if a:\n    b\n"),
        ("```{.python}\na\n```", "a\n"),
        ("```Python title=x\na\n```", "a\n"),
        ("```python\r\na\r\n```\r\n", "a\n"),
        ("```python\na\n```\n```\n\n```", "a\n"),
        ("inline ```a``` only", "inline ```a``` only"),
        ("```python\nUser: 1\n```", "User: 1\n"),
        ("<think>```python\nno\n```</think>```python\nyes\n```", "yes\n"),
    ],
)
def test_the_last_fence_of_the_language_is_the_code(text: str, expected: str) -> None:
    assert code(text) == expected


def test_each_language_has_its_own_tags() -> None:
    text = "```c++\nc\n```\n```js\nj\n```\n```sh\ns\n```"
    assert [code(text, language) for language in ("cpp", "javascript", "bash")] == ["c\n", "j\n", "s\n"]


def test_a_trajectory_gives_its_last_assistant_message() -> None:
    messages = [
        {"role": "assistant", "content": "```python\nold\n```"},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": "```python\nnew\n```"},
    ]
    assert code({"messages": messages}) == "new\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \n", "empty"),
        ("```python\n\n```", "no_answer"),
        ("<think>```python\na\n```", "unfinished_think"),
        ("a = '\ud800'", "no_answer"),
        ("x" * 200_001, "too_long"),
    ],
)
def test_no_code_is_a_format_error(text: str | None, expected: str) -> None:
    assert outcome(text) == (Outcome.FORMAT_ERROR, expected)


def test_thinking_may_be_kept() -> None:
    assert code("<think>\n```python\na\n```", think="keep") == "a\n"


def test_hostile_text_is_read_in_linear_time() -> None:
    started = time.perf_counter()
    for text in ("`" * 200_000, "```\n" * 50_000, "~~~ ~~~\n" * 25_000, " " * 199_999 + "`"):
        fences(text)
    assert time.perf_counter() - started < 1.0
