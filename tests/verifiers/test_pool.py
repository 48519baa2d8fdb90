"""The worker pool under attack: what one answer does touches that answer alone."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_until
from verifiers.contract import Case, Outcome
from verifiers.engine import Engine
from verifiers.pool import DEADLINE_S, STARVED_DEADLINE_S

GOOD = Case("math", {}, {"answer": "x^2-1"}, "\\boxed{(x-1)(x+1)}")
SLOW = Case("math", {}, {"answer": "\\int f"}, "\\boxed{\\int_0^1 (x+y+z+w)^{999} (x+y+z+w)^{999} dx}")
"""The second parser leaves integrals to math-verify, and that one takes for ever to carry this one out."""


@pytest.fixture
def own() -> Iterator[Engine]:
    engine = Engine(None, workers=2)
    yield engine
    engine.close()


def _children(pid: int) -> list[int]:
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _parent(int(entry.name)) == pid
    ]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _workers(engine_pid: int) -> list[int]:
    return [worker for template in _children(engine_pid) for worker in _children(template)]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nothing_is_started_before_it_is_needed(own: Engine) -> None:
    before = threading.active_count()
    own.verify(Case("math", {}, {"answer": "5"}, "\\boxed{5}"))
    assert threading.active_count() == before


def test_order_is_kept_and_every_case_has_its_verdict(own: Engine) -> None:
    cases = [Case("math", {}, {"answer": f"x+{i}"}, f"\\boxed{{{i % 50}+x}}") for i in range(300)]
    verdicts = own.verify_many(cases)
    assert [v.outcome is Outcome.VERIFIED for v in verdicts] == [i < 50 for i in range(300)]


@pytest.mark.faults
def test_a_killed_worker_costs_nobody_a_verdict(own: Engine) -> None:
    own.verify(GOOD)
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.05):
            for worker in _workers(os.getpid())[:1]:
                try:
                    os.kill(worker, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return

    killer = threading.Thread(target=kill)
    killer.start()
    verdicts = own.verify_many([GOOD] * 1000)
    stop.set()
    killer.join(timeout=10)
    assert {v.outcome for v in verdicts} == {Outcome.VERIFIED}


@pytest.mark.faults
def test_a_killed_template_is_started_again(own: Engine) -> None:
    own.verify(GOOD)
    for template in _children(os.getpid()):
        os.kill(template, signal.SIGKILL)
    assert own.verify(GOOD).outcome is Outcome.VERIFIED


def test_an_answer_over_the_deadline_fails_and_good_ones_do_not_notice(own: Engine) -> None:
    verdicts = own.verify_many([GOOD, SLOW, *[GOOD] * 40, SLOW, *[GOOD] * 40])
    slow = [v for v in verdicts if v.code == "deadline"]
    assert [(v.outcome, v.reward) for v in slow] == [(Outcome.FAILED, 0.0)] * 2
    assert {v.outcome for v in verdicts if v not in slow} == {Outcome.VERIFIED}
    assert all(DEADLINE_S * 1e3 <= v.cost.verify_ms < STARVED_DEADLINE_S * 1e3 + 500 for v in slow)


def test_waiting_is_queue_time_and_never_the_answers_fault(own: Engine) -> None:
    """Eight threads on two workers: the good cases wait behind slow ones, and are verified."""
    found: list[Outcome] = []

    def ask(case: Case) -> None:
        found.append(own.verify(case).outcome)

    threads = [threading.Thread(target=ask, args=(case,)) for case in [SLOW] * 4 + [GOOD] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(found) == [Outcome.FAILED] * 4 + [Outcome.VERIFIED] * 4


def test_a_reference_that_cannot_be_judged_in_time_is_our_fault(own: Engine) -> None:
    """The gold itself hangs: an answer that differs from it in one blank must not be blamed."""
    gold = str(SLOW.response).removeprefix("\\boxed{").removesuffix("}")
    verdict = own.verify(Case("math", {}, {"answer": gold}, "\\boxed{\\int_0^1 x dx}"))
    assert verdict.outcome in (Outcome.FAILED, Outcome.VERIFIER_ERROR)
    assert own.verify(Case("math", {}, {"answer": gold}, f"\\boxed{{{gold} }}")).outcome is Outcome.VERIFIED


def test_workers_cannot_take_the_hosts_memory(own: Engine) -> None:
    own.verify(GOOD)
    limits = Path(f"/proc/{_workers(os.getpid())[0]}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert int(line.split()[3]) == 1536 * 1024 * 1024


def test_close_leaves_no_process(own: Engine) -> None:
    own.verify(GOOD)
    started = [*_children(os.getpid()), *_workers(os.getpid())]
    assert started
    own.close()
    own.close()
    wait_until(lambda: not any(map(_alive, started)), within_s=10)
    assert own.verify(GOOD).code == "crash"


@pytest.mark.faults
def test_workers_die_with_a_parent_that_is_killed() -> None:
    """Also in the middle of a case: nothing of a service that was killed goes on computing."""
    code = f"""
import sys, threading
from verifiers.contract import Case
from verifiers.engine import Engine
engine = Engine(None, workers=1)
engine.verify(Case("math", {{}}, {{"answer": "x+1"}}, "1+x+0"))
threading.Thread(target=engine.verify, args=(Case("math", {{}}, {SLOW.reference!r}, {SLOW.response!r}),)).start()
print("ready", flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin
    assert parent.stdout
    with parent.stdin, parent.stdout:
        assert parent.stdout.readline() == "ready\n"
        started = [*_children(parent.pid), *_workers(parent.pid)]
        assert len(started) == 2
        parent.kill()
        parent.wait(timeout=10)
    wait_until(lambda: not any(map(_alive, started)), within_s=10)


def test_a_case_that_is_not_json_costs_only_itself(own: Engine) -> None:
    odd = Case("math", {}, {"answer": "x"}, {"messages": [{"role": "assistant", "content": "x+0"}], "odd": object()})
    verdicts = own.verify_many([GOOD, odd, GOOD])
    assert [v.outcome for v in verdicts] == [Outcome.VERIFIED, Outcome.VERIFIER_ERROR, Outcome.VERIFIED]
