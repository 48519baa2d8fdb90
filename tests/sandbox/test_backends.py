"""Backends by name: no silent fall-back, and the weaker one says so in every result."""

import os

import pytest

from sandbox.backends import make_backend
from sandbox.backends._seccomp import program
from sandbox.contract import ExecRequest, Limits, SandboxUnavailable


def test_a_name_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="local, unisolated"):
        make_backend("docker-in-docker", 1)
    with pytest.raises(ValueError, match="at least 1"):
        make_backend("local", 0)


def test_without_isolation_there_is_an_error_with_a_remedy_and_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMILL_SANDBOX_CACHE", "/proc/nowhere")
    from sandbox import image
    from sandbox.backends import _bwrap

    image.stage.cache_clear()
    _bwrap.binary.cache_clear()
    backend = make_backend("local", 1)
    try:
        with pytest.raises(SandboxUnavailable, match="TASKMILL_SANDBOX_CACHE"):
            backend.run(ExecRequest("python", "print(1)"))
        found = backend.capabilities()
        assert (found.isolated, list(found.languages)) == (False, [])
        assert "TASKMILL_SANDBOX_CACHE" in found.missing["isolation"]
    finally:
        backend.close()
        image.stage.cache_clear()
        _bwrap.binary.cache_clear()


def test_a_closed_backend_starts_nothing() -> None:
    backend = make_backend("local", 1)
    backend.close()
    backend.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        backend.run(ExecRequest("python", "print(1)"))


def test_the_unisolated_backend_says_what_it_is_and_still_holds_limits() -> None:
    backend = make_backend("unisolated", 2)
    try:
        result = backend.run(ExecRequest("python", "import os; print(len(os.environ) < 15); open('a', 'w')"))
        assert (result.status, result.stdout, result.backend) == ("ok", "True\n", "unisolated")
        assert result.limits_enforced["syscalls"] == "none"
        limits = Limits(wall_s=0.5, memory_mb=128)
        assert backend.run(ExecRequest("python", "while True: pass", limits=limits)).status == "wall_limit"
        limits = Limits(wall_s=8, memory_mb=128)
        grown = "x = [b'%d' % i * (8 << 20) for i in range(60)]\nimport time; time.sleep(9)"
        assert backend.run(ExecRequest("python", grown, limits=limits)).status == "memory_limit"
        assert backend.run(ExecRequest("python", "print(1")).status == "nonzero_exit"
        found = backend.capabilities()
        assert not found.isolated
        assert "python" in found.languages
    finally:
        backend.close()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_whole_instructions_and_jumps_inside_itself(machine: str) -> None:
    import struct

    code = program(machine)
    assert code is not None
    steps = [struct.unpack_from("HBBI", code, at) for at in range(0, len(code), 8)]
    for number, (operation, if_true, if_false, _) in enumerate(steps):
        if operation & 0x07 == 0x05:
            assert number + 1 + max(if_true, if_false) < len(steps)
    assert steps[-1][0] == 0x06
    assert len(steps) < 4096
    assert program("pdp11") is None


def test_the_doctor_names_every_method(grouped: object) -> None:
    from sandbox.doctor import examine

    found = examine("local")
    assert found["isolated"]
    assert set(found["limits_enforced"]) == {"memory", "processes", "cpu", "disk", "syscalls"}
    assert found["machine"]["root"] == (os.getuid() == 0)
