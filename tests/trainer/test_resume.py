"""Resume is exact: whatever dies wherever, the run ends with the weights of an uninterrupted one."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from tests.trainer.crashing_run import DIED, RUNS, config, run
from tests.trainer.offline import FileStream, ToyTasks, reversals
from trainer import checkpoint
from trainer.contract import Superseded, TrainerError
from trainer.run import _start, run_phases

POINTS = [
    ("leased", 6),
    ("generated", 6),
    ("verified", 6),
    ("stepped", 6),
    ("checkpoint:model.pt", 2),
    ("checkpoint:ledger.json", 2),
    ("checkpoint:written", 2),
    ("checkpoint:renamed", 2),
    ("acknowledged", 2),
]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found = checkpoint.newest(folder / "out")
    assert found is not None
    assert found.name == "step-12"
    loaded: dict[str, torch.Tensor] = torch.load(found / "model.pt", weights_only=True)
    return loaded


def ledgers_agree(folder: Path) -> None:
    """I1, I2: every ordinal is acknowledged once in the surviving history, and every group was judged once."""
    state = json.loads((folder / "stream.json").read_text())
    assert [row["state"] for row in state["ordinals"]] == ["completed"] * 48
    assert [row["step"] for row in state["ordinals"]] == [1 + i // 4 for i in range(48)]
    assert Counter(v["ordinal"] for v in state["verdicts"].values()) == Counter(range(48))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run(folder, "nowhere", 1, resume=False)
    ledgers_agree(folder)
    return folder


@pytest.mark.parametrize(("point", "occurrence"), POINTS)
def test_a_crash_changes_nothing(point: str, occurrence: int, tmp_path: Path, uninterrupted: Path) -> None:
    """#5, #6, #10: the process dies at the point (`os._exit`), a new one resumes; weights and ledgers are equal."""
    command = [sys.executable, "-m", "tests.trainer.crashing_run", str(tmp_path), point, str(occurrence)]
    died = subprocess.run(command, timeout=100, capture_output=True, check=False)
    assert died.returncode == DIED, died.stderr.decode()
    run(tmp_path, "nowhere", 1, resume=True)
    expected, found = weights(uninterrupted), weights(tmp_path)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    ledgers_agree(tmp_path)
    steps = [json.loads(line)["step"] for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(13))


def test_ten_kills_in_a_row_lose_and_repeat_nothing(tmp_path: Path, uninterrupted: Path) -> None:
    """#5: many resumes skip no prompt."""
    shutil.copytree(uninterrupted, tmp_path / "unused")
    resume = False
    for occurrence in range(2, 12):
        command = [sys.executable, "-c", _ONE_CRASH, str(tmp_path), str(occurrence), "1" if resume else ""]
        subprocess.run(command, timeout=100, capture_output=True, check=False)
        resume = checkpoint.newest(tmp_path / "out") is not None
    run(tmp_path, "nowhere", 1, resume=True)
    expected, found = weights(uninterrupted), weights(tmp_path)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    ledgers_agree(tmp_path)


_ONE_CRASH = """
import sys
from pathlib import Path
from tests.trainer.crashing_run import run
points = ("verified", "stepped", "leased", "generated", "acknowledged")
n = int(sys.argv[2])
run(Path(sys.argv[1]), points[n % 5], 1 + n % 3, resume=bool(sys.argv[3]))
"""


def test_each_truncated_file_sends_the_resume_to_the_checkpoint_before(tmp_path: Path, uninterrupted: Path) -> None:
    """#9: a half-written checkpoint is never chosen, whatever its name."""
    names = sorted(path.name for path in (uninterrupted / "out" / "step-12").iterdir())
    assert "MANIFEST.json" in names
    assert "reference.pt" in names
    for name in names:
        copy = tmp_path / name
        shutil.copytree(uninterrupted / "out", copy)
        whole = (copy / "step-12" / name).read_bytes()
        (copy / "step-12" / name).write_bytes(whole[: len(whole) // 2])
        found = checkpoint.newest(copy)
        assert found is not None
        assert found.name == "step-8", name


def test_resume_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    """A run never restarts from base weights by itself."""
    with pytest.raises(TrainerError, match="no whole checkpoint"):
        run(tmp_path, "nowhere", 1, resume=True)


def test_a_second_start_in_the_same_folder_is_an_error(tmp_path: Path, uninterrupted: Path) -> None:
    shutil.copytree(uninterrupted / "out", tmp_path / "out")
    with pytest.raises(TrainerError, match="use --resume"):
        run(tmp_path, "nowhere", 1, resume=False)


def test_resume_with_another_configuration_names_the_key(tmp_path: Path, uninterrupted: Path) -> None:
    shutil.copytree(uninterrupted / "out", tmp_path / "out")
    changed = config(tmp_path, optim={"lr": 1e-5})
    with pytest.raises(TrainerError, match=r"optim\.lr"):
        _start(changed, tmp_path / "out", resume=True)


def test_two_trainers_on_one_stream_the_older_stops(tmp_path: Path) -> None:
    """I4: after a restore the older consumer can acknowledge nothing."""
    tasks = reversals(60, 1)
    old = FileStream(tmp_path / "stream.json", tasks, 4, "old")
    resolved = config(tmp_path)
    start = _start(resolved, Path(resolved.run.out_dir), resume=False)
    source = ToyTasks(tasks[:40], reversals(30, 2))

    def takeover(name: str) -> None:
        if name == "generated":
            new = FileStream(tmp_path / "stream.json", tasks, 4, "new")
            new.restore(json.dumps([]))

    with pytest.raises(Superseded):
        run_phases(resolved, old, source, [], RUNS, start, notice=takeover)
    assert not [row for row in old.state()["ordinals"] if row["state"] == "completed"]


def test_groups_without_verdicts_are_handed_back_and_refilled_exactly(tmp_path: Path) -> None:
    """#24: a sandbox that is down for a group gives null, never 0; the ordinal is served again."""
    run(tmp_path, "nowhere", 1, resume=False, broken=3)
    state = json.loads((tmp_path / "stream.json").read_text())
    rows = state["ordinals"]
    assert sorted({row["served"] for row in rows if row["state"] == "completed"}) == [2]
    assert all(row["acks"] == 1 for row in rows if row["state"] == "completed")
    assert sum(row["state"] == "completed" for row in rows) == 48


def test_an_expired_lease_is_acknowledged_under_its_next_one(tmp_path: Path, uninterrupted: Path) -> None:
    """The work is trained already: it is not done again, and it is acknowledged once."""
    tasks = reversals(60, 1)
    stream = FileStream(tmp_path / "stream.json", tasks, 4, "one")
    resolved = config(tmp_path)
    start = _start(resolved, Path(resolved.run.out_dir), resume=False)
    steps = Counter[str]()

    def expire_once(name: str) -> None:
        steps[name] += 1
        if name == "stepped" and steps[name] == 2:
            stream.expire_leases()

    run_phases(resolved, stream, ToyTasks(tasks[:40], reversals(30, 2)), [], RUNS, start, notice=expire_once)
    done = [row for row in stream.state()["ordinals"] if row["state"] == "completed"]
    assert len(done) == 48
    assert all(row["acks"] == 1 for row in done)
    expected, found = weights(uninterrupted), weights(tmp_path)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
