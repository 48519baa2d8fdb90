"""Control groups: what the kernel's files say is read as it is meant, and a limit counts only when it reads back."""

import os
from pathlib import Path

import pytest

from sandbox.backends._cgroup import OVERHEAD_BYTES, Hierarchy, Leaf, LimitNotHeld, detect, start_time


def test_version_2_files_are_read_and_written(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\n")
    (tmp_path / "memory.peak").write_text("4096\n")
    (tmp_path / "memory.swap.max").write_text("max\n")
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (tmp_path / "pids.current").write_text("5\n")
    (tmp_path / "pids.events").write_text("max 7\n")
    leaf = Leaf(Hierarchy(2, tmp_path, tmp_path, tmp_path))
    leaf.limit(64 << 20, 10)
    assert leaf.usage() == (1.5, 4096, 5, 2, 7)
    assert (tmp_path / "memory.max").read_text() == str((64 << 20) + OVERHEAD_BYTES)
    assert (tmp_path / "memory.swap.max").read_text() == "0"
    assert (tmp_path / "pids.max").read_text() == "11"


def test_a_limit_that_reads_back_otherwise_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "memory.max").symlink_to("/dev/null")
    with pytest.raises(LimitNotHeld, match=r"memory\.max"):
        Leaf(Hierarchy(2, tmp_path, tmp_path, tmp_path)).limit(64 << 20, 10)


def test_absent_files_count_as_nothing(tmp_path: Path) -> None:
    assert Leaf(Hierarchy(2, tmp_path, tmp_path, tmp_path)).usage() == (0.0, 0, 0, 0, 0)


def test_leaves_of_dead_owners_are_swept_and_others_are_not(tmp_path: Path) -> None:
    namespace, me = os.stat("/proc/self/ns/pid").st_ino, os.getpid()
    names = {
        f"taskmill.{namespace}.{me}.{start_time(me)}.1": True,
        f"taskmill.{namespace}.{me}.1.1": False,  # our pid, but of another process before us
        f"taskmill.{namespace}.99999999.5.1": False,
        "taskmill.1.99999999.5.1": True,  # of another pid namespace: we cannot see whether it lives
        "taskmill.odd": True,
        "docker": True,
    }
    for name in names:
        (tmp_path / name).mkdir()
    assert Hierarchy(2, tmp_path, tmp_path, tmp_path).sweep() == 2
    assert {path.name for path in tmp_path.iterdir()} == {name for name, stays in names.items() if stays}


def test_a_real_leaf_holds_its_limits_in_both_directions() -> None:
    groups = detect()
    if groups is None:
        pytest.skip("no control group can be made: run as root, or `systemd-run --user --scope -p Delegate=yes`")
    leaf = groups.leaf()
    try:
        for megabytes in (64, 512, 32, 16384):
            leaf.limit(megabytes << 20, 4)
        assert leaf.usage().processes_now == 0
    finally:
        assert leaf.remove()
    assert leaf.remove()
