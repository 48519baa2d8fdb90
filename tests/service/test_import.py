"""Imports: every line is answered, whatever is in it and however the body is cut."""

import gzip
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.actions.import_tasks import Inflater
from service.errors import Problem
from tests.service.conftest import a_task

JSONL = {"Content-Type": "application/jsonl"}


def _import(client: TestClient, body: Any, **headers: str) -> list[dict[str, Any]]:
    answer = client.post("/v1/tasks:import", content=body, headers=JSONL | headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def _lines(count: int) -> list[bytes]:
    return [json.dumps(a_task(reference={"answer": str(n)})).encode() for n in range(count)]


def test_every_line_is_answered_and_a_bad_one_loses_no_other(client: TestClient) -> None:
    """D39: more than one chunk, bad lines among them."""
    lines = _lines(1203)
    lines[6] = b"{broken"
    lines[700] = json.dumps(a_task(verifier={"name": "nope"})).encode()
    lines[900] = lines[10]
    answers = _import(client, b"\n".join(lines))
    assert [answer["line"] for answer in answers[:-1]] == list(range(1, 1204))
    assert answers[-1]["summary"] == {"lines": 1203, "created": 1200, "duplicate": 1, "held_for_review": 0, "failed": 2}
    assert answers[6]["problem"]["status"] == 422
    assert answers[700]["problem"]["errors"][0]["pointer"] == "/verifier/name"
    assert answers[900]["duplicate_of"] == answers[10]["id"]


def test_gzip_is_read_and_a_bomb_is_not(client: TestClient) -> None:
    packed = gzip.compress(b"\n".join(_lines(20)))
    assert _import(client, packed, **{"Content-Encoding": "gzip"})[-1]["summary"]["created"] == 20
    bomb = gzip.compress(b"\n" * (40 * 2**20))
    answer = client.post("/v1/tasks:import", content=bomb, headers=JSONL | {"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_a_line_that_is_too_long_is_one_bad_line(client: TestClient) -> None:
    lines = _lines(3)
    lines[1] = b'"' + b"x" * (17 * 2**20) + b'"'
    answers = _import(client, b"\n".join(lines))
    assert [answer.get("status") for answer in answers[:-1]] == [201, 413, 201]


@hypothesis_settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 400), min_size=1, max_size=40), blanks=st.integers(0, 3))
def test_the_cutting_of_the_body_changes_nothing(client: TestClient, cuts: list[int], blanks: int) -> None:
    body = (b"\n" * (blanks + 1)).join(_lines(4)) + b"\n" * blanks

    def pieces() -> Any:
        place = 0
        for cut in cuts:
            yield body[place : place + cut]
            place += cut
        yield body[place:]

    answers = _import(client, pieces())
    assert [answer["line"] for answer in answers[:-1]] == [1 + (blanks + 1) * n for n in range(4)]
    assert answers[-1]["summary"]["failed"] == 0


@given(data=st.binary(max_size=2000), cut=st.integers(1, 50))
def test_gzip_in_pieces_is_the_same_as_whole(data: bytes, cut: int) -> None:
    packed = gzip.compress(data) + gzip.compress(b"tail")
    inflater = Inflater()
    assert b"".join(inflater.feed(packed[i : i + cut]) for i in range(0, len(packed), cut)) == data + b"tail"


def test_what_is_no_gzip_is_a_problem() -> None:
    with pytest.raises(Problem):
        Inflater().feed(b"plain text")
