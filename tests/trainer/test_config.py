"""The configuration: errors name their key, and no key is without a reader."""

import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trainer
from trainer import config as module
from trainer.config import Config, ConfigError, load, parse

LEAST: dict[str, Any] = {"run": {"name": "r", "out_dir": "o", "max_steps": 3}, "stream": {"domains": {"d": 1}}}
TEXT = '[run]\nname = "r"\nout_dir = "o"\nmax_steps = 3\n[stream]\ndomains = {"math.add" = 1.0}\n[demo]\nany = 1\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(TEXT)
    return path


def test_defaults_and_overrides(file: Path) -> None:
    found = load(
        file,
        ["run.seed=7", "optim.betas=[0.8, 0.9]", "algo.importance.opsm=0.5", "run.name=other", 'sft.source="gold"'],
    )
    assert (found.run.seed, found.optim.betas, found.algo.importance.opsm) == (7, (0.8, 0.9), 0.5)
    assert found.run.name == found.stream_name == "other"
    assert found.min_valid == 4
    assert parse(json.loads(json.dumps(found.as_dict()))) == found


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.sead=1", "run.sead: unknown key; known here: max_steps, name"),
        ("runs.seed=1", "runs: unknown key"),
        ("algo.importance.cap=1", "algo.importance.cap: unknown key"),
        ("run.seed=1.5", "run.seed: must be int, not float"),
        ("run.seed=true", "run.seed: must be int"),
        ("optim.lr=fast", "optim.lr: must be float, not str"),
        ('algo.scale="big"', "algo.scale: must be one of 'none'"),
        ("run=1", "run: must be a table"),
        ("run.seed.x=1", "run.seed: must be int"),
        ("run.name.x=1", "name is a value, not a table"),
        ("seed", "write it as table.key=value"),
        ("optim.lr=0", "optim.lr: must be greater than 0"),
        ("model.dim=50", "model.dim: must be an even multiple"),
        ("stream.domains={}", "stream.domains: name at least one"),
        ("rollout.group_size=1", "rollout.group_size"),
        ("rollout.min_valid=9", "rollout.min_valid"),
        ("algo.clip=[0.1]", "algo.clip: must hold two"),
        ("optim.betas=[0.1]", "optim.betas: must hold two"),
        ("algo.importance.seq_mask=[0.1]", "algo.importance.seq_mask"),
        ("sft.tasks={other = 3}", "sft.tasks: maps domains of the stream"),
        ("algo.overlong.buffer=99", "algo.overlong.buffer"),
        ('optim.betas=[1, "a"]', r"optim.betas\[1\]: must be float"),
    ],
)
def test_errors_name_the_key_and_the_rule(file: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[0", r"\[0") if "must hold" in message else message):
        load(file, [override])


def test_a_missing_file_bad_toml_and_a_missing_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = [")
    with pytest.raises(ConfigError, match="not TOML"):
        load(tmp_path / "bad.toml")
    with pytest.raises(ConfigError, match=r"run\.max_steps: this key is required"):
        parse({"run": {"name": "r", "out_dir": "o"}, "stream": {"domains": {"d": 1}}})


def keys(cls: type, where: str = "") -> Iterator[str]:
    for found in dataclasses.fields(cls):
        if isinstance(found.type, type) and dataclasses.is_dataclass(found.type):
            yield from keys(found.type, f"{where}{found.name}.")
        else:
            yield f"{where}{found.name}"


def test_every_key_has_a_reader() -> None:
    """A key that is declared and never read restarts runs silently; here each is an attribute read somewhere."""
    read: set[str] = set()
    for path in Path(trainer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
    cli = Path(trainer.__file__).parents[1] / "taskmill" / "cli" / "train.py"
    read |= {node.attr for node in ast.walk(ast.parse(cli.read_text())) if isinstance(node, ast.Attribute)}
    assert not [key for key in keys(Config) if key.rpartition(".")[2] not in read]


@pytest.mark.parametrize("key", sorted(keys(Config)))
def test_every_key_changes_the_plan(key: str) -> None:
    """Each key set to another value gives another resolved plan."""
    from trainer.run import plan

    data = json.loads(json.dumps(parse(LEAST).as_dict()))
    table: Any = data
    *path, name = key.split(".")
    for part in path:
        table = table[part]
    table[name] = CHOICES.get(key, _other(table[name]))
    assert plan(parse(data)) != plan(parse(LEAST))


CHOICES: dict[str, Any] = {
    "model.heads": 8,
    "model.dim": 32,
    "stream.domains": {"e": 2},
    "stream.policy": {"kind": "uniform"},
    "algo.baseline": "loo",
    "algo.scale": "std",
    "algo.ratio": "sequence",
    "algo.clip": [0.1, 0.1],
    "algo.clip_mode": "cispo",
    "algo.agg": "seq",
    "algo.importance.token_mask": [0.5, 2.0],
    "algo.importance.seq_mask": [],
    "optim.betas": [0.5, 0.5],
    "sft.tasks": {"d": 7},
    "optim.schedule": "linear",
    "eval.split": "holdout",
}


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value / 2 + 0.1 if isinstance(value, float) else f"{value}x"


def test_the_module_imports_no_torch() -> None:
    assert "torch" not in vars(module)
