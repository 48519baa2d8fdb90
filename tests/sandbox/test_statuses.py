"""What happened decides the status, in a fixed order; what the program prints decides nothing."""

import pytest

from sandbox.contract import ExecStatus
from sandbox.outcome import Observed, decide, evidence
from tests.sandbox.conftest import Execute


def test_the_end_of_a_program_is_told_as_it_was(execute: Execute) -> None:
    result = execute("import sys; print('out'); print('err', file=sys.stderr); sys.exit(137)")
    assert (result.status, result.exit_code, result.signal) == ("nonzero_exit", 137, None)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    result = execute("import os; os.kill(os.getpid(), 9)")
    assert (result.status, result.exit_code, result.signal) == ("signal", None, 9)


def test_the_wall_limit_ends_a_stopped_group_and_keeps_its_output(execute: Execute) -> None:
    result = execute("import os; print('here', flush=True); os.kill(0, 19)", limits={"wall_s": 0.5})
    assert (result.status, result.exit_code, result.signal) == ("wall_limit", None, None)
    assert result.stdout == "here\n"
    assert result.wall_s < 1.5
    assert result.cpu_s < 0.4


def test_the_cpu_limit_holds_over_children(execute: Execute) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    result = execute(code, limits={"wall_s": 8, "cpu_s": 0.6})
    assert result.status == "cpu_limit"
    assert 0.5 < result.cpu_s < 3


def test_memory_is_bounded_over_the_whole_box(execute: Execute) -> None:
    code = """
import os, sys, time
kids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        held = b"x" * (50 << 20)
        time.sleep(1)
        os._exit(0)
    kids.append(pid)
sys.exit(any([os.waitpid(kid, 0)[1] for kid in kids]))
"""
    result = execute(code, limits={"memory_mb": 96})
    assert result.status == "memory_limit"
    if result.limits_enforced["memory"] != "poll":  # between two looks a program may take what it likes
        assert result.memory_mb < 96 * 1.6


def test_a_refused_fork_is_the_process_limit_unless_it_is_handled(execute: Execute) -> None:
    code = """
import os, time
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
except BlockingIOError:
    {}
"""
    result = execute(code.format("raise"), limits={"processes": 8})
    assert result.status == "process_limit"
    result = execute(code.format("os._exit(0)"), limits={"processes": 8})
    assert result.status == "ok"
    assert result.evidence


@pytest.mark.parametrize("place", ["/box", "/tmp", "/dev/shm"])
def test_every_writable_place_is_bounded(execute: Execute, place: str) -> None:
    code = f"f = open('{place}/fill', 'wb')\nfor _ in range(40): f.write(b'x' * (1 << 20)); f.flush()\nprint('ESCAPED')"
    result = execute(code, limits={"disk_mb": 8})
    assert result.status == "disk_limit"
    assert "ESCAPED" not in result.stdout


@pytest.mark.parametrize(
    "place", ["/run/box", "/run", "/dev", "/etc", "/", "/usr/local", "/dev/mqueue", "/proc", "/sys"]
)
def test_nothing_else_can_be_filled(execute: Execute, place: str) -> None:
    code = f"f = open('{place}/fill', 'wb')\nfor _ in range(40): f.write(b'x' * (1 << 20)); f.flush()\nprint('ESCAPED')"
    assert "ESCAPED" not in execute(code, limits={"disk_mb": 8}).stdout


def test_output_over_the_cap_ends_the_program_and_keeps_the_first_part(execute: Execute) -> None:
    for stream in (1, 2):
        result = execute(f"import os\nwhile True: os.write({stream}, b'a' * 5000)", limits={"output_kb": 64})
        assert result.status == "output_limit"
        assert len((result.stdout, result.stderr)[stream - 1]) == 64 * 1024
        assert (result.stdout_truncated, result.stderr_truncated)[stream - 1]


def test_output_of_exactly_the_cap_is_whole_and_one_byte_more_is_not(execute: Execute) -> None:
    assert execute("import os; os.write(1, b'a' * 1024)", limits={"output_kb": 1}).status == "ok"
    result = execute("import os; os.write(1, b'a' * 1025)", limits={"output_kb": 1})
    assert (result.status, len(result.stdout)) == ("output_limit", 1024)


def test_a_character_cut_by_the_cap_is_left_out(execute: Execute) -> None:
    result = execute("print('a' + '€' * 2000)", limits={"output_kb": 1})
    assert set(result.stdout) == {"a", "€"}


def test_the_forgotten_child_neither_holds_the_answer_nor_adds_to_it(execute: Execute) -> None:
    code = "import os, time\nif os.fork() == 0:\n    time.sleep(0.3); print('late', flush=True)\nelse: print('done')"
    result = execute(code)
    assert (result.status, result.stdout) == ("ok", "done\n")
    assert result.wall_s < 0.3


def test_shooting_at_every_process_is_an_ordinary_end(execute: Execute) -> None:
    for number in (9, 15, 2, 19, 17, 10):
        result = execute(f"import os\nos.kill(1, {number})\ntry: os.kill(-1, {number})\nexcept OSError: pass\nprint(1)")
        assert result.status in ("ok", "signal")


def test_input_arrives_byte_for_byte_and_need_not_be_read(execute: Execute) -> None:
    code = "import sys; print(repr(sys.stdin.buffer.read()))"
    assert execute(code, stdin="a\r\n\x00é").stdout == repr("a\r\n\x00é".encode()) + "\n"
    assert execute(code).stdout == "b''\n"
    assert execute("print('deaf')", stdin="y" * 3_000_000).status == "ok"
    assert execute("import sys; print(len(sys.stdin.read()))", stdin="y" * 3_000_000).stdout == "3000000\n"


def test_languages_are_compiled_and_run_in_the_box(execute: Execute, backend: object) -> None:
    assert execute("echo $((6*7)); exit 4", "bash").exit_code == 4
    result = execute("int main(void) { return x; }", "c")
    assert (result.status, result.stage) == ("compile_error", "compile")
    assert "undeclared" in result.stderr
    result = execute('#include <cstdio>\nint main() { char s[9]; scanf("%8s", s); puts(s); }', "cpp", stdin="abc")
    assert (result.status, result.stage, result.stdout) == ("ok", "run", "abc\n")
    assert execute("console.log(process.argv.length, 6 * 7)", "javascript").stdout == "2 42\n"


def test_deep_recursion_in_c_has_a_large_stack(execute: Execute) -> None:
    code = """
int f(int n) { volatile char b[100]; b[0] = n; return n ? f(n - 1) + b[0] * 0 : 0; }
int main(void) { return f(50000); }
"""
    assert execute(code, "c").status == "ok"


BASE = Observed(0, "", False, False, False, False, False, "run")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "ok"),
        ({"out_of_memory": True, "fork_refused": True, "place_full": True}, "ok"),
        ({"cause": "output", "cpu_over": True}, "output_limit"),
        ({"cause": "wall", "raw": None}, "wall_limit"),
        ({"cpu_over": True}, "cpu_limit"),
        ({"raw": 256, "out_of_memory": True, "fork_refused": True}, "memory_limit"),
        ({"raw": 9, "memory_nearly_used": True}, "memory_limit"),
        ({"raw": 15, "memory_nearly_used": True}, "signal"),
        ({"raw": 256, "fork_refused": True, "place_full": True}, "process_limit"),
        ({"raw": 256, "place_full": True, "stage": "compile"}, "disk_limit"),
        ({"raw": 25}, "disk_limit"),
        ({"raw": 256, "stage": "compile"}, "compile_error"),
        ({"raw": 137 << 8}, "nonzero_exit"),
        ({"raw": 9}, "signal"),
        ({"raw": None, "out_of_memory": True}, "memory_limit"),
        ({"raw": None, "cause": "stopped"}, "signal"),
    ],
)
def test_the_order_of_the_decision(changes: dict[str, object], status: str) -> None:
    from dataclasses import replace

    seen = replace(BASE, **changes)  # type: ignore[arg-type]
    assert decide(seen) == ExecStatus(status)
    assert isinstance(evidence(seen), list)
