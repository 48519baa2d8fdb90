"""Reading a response: what is scored of it, and where in it the answer is."""

import time

import pytest

from tests.verifiers.judging import judge
from verifiers.contract import Outcome, Response
from verifiers.engine import Engine

FOUND = [
    # auto: the first slot that exists and fits
    ("The answer is \\boxed{7}.", {}, "7"),
    ("#### 5\n\\boxed{7}", {}, "7"),
    ("<answer>7</answer>", {}, "7"),
    ("Answer: 7", {}, "7"),
    ("**Answer:** 7", {}, "7"),
    ("**Answer**: 7", {}, "7"),
    ("**Final Answer: 7**", {}, "7"),
    ("### Final answer: 7", {}, "7"),
    ("FINAL ANSWER: 7\n", {}, "7"),
    ("Answer: 3\nwait\nAnswer: 7", {}, "7"),
    ("Final answer:\n\n$7$", {}, "7"),
    ("So the answer is 7. Great!", {}, "7"),
    ("The final answer is **7**.", {}, "7"),
    ("The answer is $7.5$.", {}, "7.5"),
    ("thus\n#### 7", {}, "7"),
    ("7", {}, "7"),
    ("\\boxed{abc}\nAnswer: 7", {}, "7"),
    ("\\boxed{} and Answer line:\nAnswer: 7", {}, "7"),
    # boxes
    ("\\boxed{3} so \\boxed{7}", {"slot": "boxed"}, "7"),
    ("So \\boxed{3}. Wait, no. \\boxed{7}", {"slot": "boxed"}, "7"),
    ("\\boxed{\\boxed{7}}", {"slot": "boxed"}, "7"),
    ("\\fbox{7}", {"slot": "boxed"}, "7"),
    ("\\boxed 7", {"slot": "boxed"}, "7"),
    ("$\\boxed7$.", {"slot": "boxed"}, "7"),
    ("\\boxed{7}, $\\boxed{7}$", {"slot": "boxed"}, "7"),
    ("{ \\boxed{7}", {"slot": "boxed"}, "7"),
    ("\\boxed{\\frac{14}{2}}", {"slot": "boxed"}, "7"),
    ("\\boxed{ 7 } \\boxed{8", {"slot": "boxed"}, "7"),
    # hash, last number, tag, raw
    ("a\n#### 3\nb\n#### $7", {"slot": "hash"}, "7"),
    ("it costs 3 then -7", {"slot": "last_number"}, "-7"),
    ("pages 3-7", {"slot": "last_number"}, "7"),
    ("about 1,234.5 in all.", {"slot": "last_number"}, "1234.5"),
    ("a, 2, 3 and 7.", {"slot": "last_number"}, "7"),
    ("it is 7%", {"slot": "last_number"}, "0.07"),
    ("three quarters: 3/4", {"slot": "last_number"}, "0.75"),
    ("<a>3</a> <a>7</a>", {"slot": "tag:a"}, "7"),
    ("  $((7))$. ", {"slot": "raw"}, "7"),
    ("\\(7\\)", {"slot": "raw"}, "7"),
    ("\\[ 7 \\]", {"slot": "raw"}, "7"),
    ("$$7$$", {"slot": "raw"}, "7"),
    ("\\text{7}", {"slot": "raw"}, "7"),
    # thinking and turns
    ("<think>\\boxed{3}</think>\\boxed{7}", {}, "7"),
    ("\\boxed{3}</think>\\boxed{7}", {}, "7"),
    ("<think>a</think>x<think>b</think>Answer: 7", {}, "7"),
    ("<think>User: what?\nHuman: hm</think>Answer: 7", {}, "7"),
    ("<think>\nAnswer: 7", {"think": "keep"}, "7"),
    ("Answer: 7\nUser: and now?\nAssistant: Answer: 8", {}, "7"),
    ("Answer: 7\n**Human:** next\nAnswer: 8", {}, "7"),
    ("Answer: 7<|im_end|>\n<|im_start|>user\nAnswer: 8", {}, "7"),
    ("Answer: 7\nUser: x\nAssistant: <think>y</think>Answer: 8", {}, "7"),
    # trajectories
    ({"messages": [{"role": "user", "content": "Answer: 3"}, {"role": "assistant", "content": "Answer: 7"}]}, {}, "7"),
    ({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "7"}]}]}, {}, "7"),
    ({"messages": [{"role": "assistant", "content": [{"text": "7"}]}]}, {}, "7"),
    ({"messages": [{"role": "assistant", "content": "7"}, {"role": "assistant", "content": None}]}, {}, "7"),
    ({"trajectory": {"messages": [{"role": "assistant", "content": "7"}]}}, {}, "7"),
    ({"messages": [{"role": "assistant", "content": "7"}], "finish_reason": "length"}, {}, "7"),
]

REFUSED = [
    ("", {}, "empty"),
    ("  \n ", {}, "empty"),
    (None, {}, "empty"),
    ({}, {}, "empty"),
    ({"messages": []}, {}, "empty"),
    ({"messages": [{"role": "user", "content": "7"}]}, {}, "empty"),
    ({"tool_calls": []}, {}, "empty"),
    ("...", {}, "empty"),
    ("<think>\\boxed{7}", {}, "unfinished_think"),
    ("<think>a</think><think>\\boxed{7}", {}, "unfinished_think"),
    ("<think>\\boxed{7}</think>", {}, "empty"),
    ("User: 7", {}, "no_answer"),
    ("System: put it in \\boxed{}.\n7", {}, "no_answer"),
    ("<|im_start|>assistant\n7", {}, "no_answer"),
    ("I do not know", {}, "no_answer"),
    ("7", {"slot": "boxed"}, "no_answer"),
    ("\\boxed{}", {"slot": "boxed"}, "no_answer"),
    ("\\boxed{7} \\boxed{}", {"slot": "boxed"}, "no_answer"),
    ("\\boxed{7", {"slot": "boxed"}, "no_answer"),
    ("The last line should be Answer: 7\nI cannot.", {"slot": "answer_line"}, "no_answer"),
    ("no hash 7", {"slot": "hash"}, "no_answer"),
    ("none", {"slot": "last_number"}, "no_answer"),
    ("<answer>7", {"slot": "tag:answer"}, "no_answer"),
    ("7" * 11, {"max_chars": 10}, "too_long"),
    ("7 " * 150_000, {}, "too_long"),
]


@pytest.mark.parametrize(("response", "params", "gold"), FOUND)
def test_the_answer_is_found(engine: Engine, response: Response, params: dict[str, object], gold: str) -> None:
    verdict = judge(engine, "numeric", response, {"answer": gold}, params)
    assert verdict.outcome is Outcome.VERIFIED, verdict


@pytest.mark.parametrize(("response", "params", "code"), REFUSED)
def test_no_answer_is_a_format_error(engine: Engine, response: Response, params: dict[str, object], code: str) -> None:
    verdict = judge(engine, "numeric", response, {"answer": "7"}, params)
    assert (verdict.outcome, verdict.reward, verdict.code) == (Outcome.FORMAT_ERROR, -1.0, code), verdict


def test_a_truncated_rollout_can_be_skipped(engine: Engine) -> None:
    response = {"messages": [{"role": "assistant", "content": "7"}], "finish_reason": "length"}
    verdict = judge(engine, "numeric", response, {"answer": "7"}, {"on_truncated": "skip"})
    assert (verdict.outcome, verdict.reward, verdict.code) == (Outcome.SKIPPED, None, "truncated")


def test_two_boxes_side_by_side_are_one_list(engine: Engine) -> None:
    boxes = "\\boxed{1} and $\\boxed{2}$"
    assert judge(engine, "math", boxes, {"answer": "2,1"}, {}).outcome is Outcome.VERIFIED
    assert judge(engine, "math", boxes, {"answer": "2"}, {}).code == "hedged"
    assert judge(engine, "numeric", boxes, {"answer": "2"}, {}).code == "hedged"


@pytest.mark.parametrize(
    "text",
    ["\\boxed{" * 28_000, "{" * 199_000, "answer" * 33_000, "answer is " * 19_000, "<answer>" * 24_000, "####" * 49_000,
     "User:" * 39_000, "<think></think>" * 13_000,
     "Answer:\n" * 24_000, "\\boxed " * 28_000,
     "$(" * 99_000, "(" * 199_000,
     "\\text{" * 33_000, "9-" * 99_000, "1," * 99_000, " " * 190_000 + "x", "\\left" * 39_000, "<|im_" * 39_000,
     "\\boxed{1}," * 19_000, "a" * 199_000, "\u00bd" * 190_000, "**" * 99_000],
)  # fmt: skip
@pytest.mark.parametrize("verifier", ["exact", "numeric", "math"])
def test_reading_is_linear(engine: Engine, verifier: str, text: str) -> None:
    """A text of the largest size allowed, made of whatever the scanner looks for; in CPU seconds, of this process."""
    started = time.process_time()
    verdict = judge(engine, verifier, text, {"answer": "7"}, {})
    assert verdict.reward is not None
    assert verdict.reward <= 0
    assert time.process_time() - started < 1.0
