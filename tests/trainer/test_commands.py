"""`taskmill train` and `taskmill evaluate`: exit codes, the dry run, and where the key comes from."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskmill.cli.app import app

TEXT = """
[run]
name = "r"
out_dir = "{out}"
max_steps = 3
[stream]
domains = {{ "math.add" = 1.0 }}
url = "http://127.0.0.1:9"
patience_s = 0.2
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TASKMILL_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.toml"
    path.write_text(TEXT.format(out=tmp_path / "out"))
    return path


def test_a_dry_run_prints_the_plan_and_touches_nothing(recipe: Path) -> None:
    done = CliRunner().invoke(app, ["train", str(recipe), "--dry-run", "--set", "rollout.group_size=4"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.output)
    assert plan["samples_per_step"] == 128
    assert plan["config"]["rollout"]["group_size"] == 4
    assert not (recipe.parent / "out").exists()


@pytest.mark.parametrize("command", [["train"], ["evaluate", "--checkpoint", "x"]])
def test_wrong_input_is_exit_2_and_says_what(recipe: Path, command: list[str]) -> None:
    wrong = CliRunner().invoke(app, [command[0], str(recipe), *command[1:], "--set", "run.sead=1"])
    assert wrong.exit_code == 2
    assert "run.sead: unknown key" in wrong.output
    keyless = CliRunner().invoke(app, [command[0], str(recipe), *command[1:]])
    assert keyless.exit_code == 2
    assert "no key" in keyless.output


def test_a_service_that_is_away_is_exit_1(recipe: Path) -> None:
    (recipe.parent / "key").write_text("tm_x\n")
    done = CliRunner().invoke(app, ["train", str(recipe), "--key-file", str(recipe.parent / "key")])
    assert done.exit_code == 1
    assert "ConnectionLost" in done.output


def test_a_resume_without_checkpoint_is_exit_1(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMILL_KEY", "tm_x")
    done = CliRunner().invoke(app, ["train", str(recipe), "--resume"])
    assert done.exit_code == 1
    assert "no whole checkpoint" in done.output


def test_without_torch_the_command_that_adds_it_is_named(recipe: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; sys.argv[0] = 'taskmill'; from taskmill.cli.app import app; app()"
    command = [sys.executable, "-c", code, "train", str(recipe)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert done.returncode == 3
    assert "pip install 'taskmill[trainer]'" in done.stderr
