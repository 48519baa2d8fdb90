"""The configuration: frozen dataclasses read from TOML, dotted overrides, and no key without a reader.

An unknown key, a wrong type or an impossible value is an error that names the key. The resolved copy is saved with the
run, and a resume compares itself with it.
"""

import dataclasses
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trainer.contract import TrainerError


class ConfigError(TrainerError):
    """The configuration is not valid; the message names the key and the rule."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """`threads` are torch's: a fixed number, because sums in another order differ in the last bit."""

    name: str
    out_dir: str
    max_steps: int
    seed: int = 0
    threads: int = 1


@dataclass(frozen=True, slots=True)
class ModelConfig:
    layers: int = 2
    dim: int = 64
    heads: int = 4


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """`name` defaults to the run's; `domains` and `policy` are sent to the service as they stand."""

    domains: Mapping[str, Any]
    url: str = "http://127.0.0.1:8700"
    key_env: str = "TASKMILL_KEY"
    name: str = ""
    policy: Mapping[str, Any] = field(default_factory=lambda: {"kind": "signal"})
    patience_s: float = 180.0


@dataclass(frozen=True, slots=True)
class RolloutConfig:
    """`min_valid` 0 means half the group."""

    group_size: int = 8
    groups_per_step: int = 32
    max_new_tokens: int = 16
    temperature: float = 1.0
    min_valid: int = 0
    max_batch: int = 512


@dataclass(frozen=True, slots=True)
class ImportanceConfig:
    """Correction of engine against trainer probabilities; 0 or an empty list switches a part off."""

    token_cap: float = 2.0
    token_mask: Sequence[float] = ()
    seq_mask: Sequence[float] = (0.5, 2.0)
    opsm: float = 0.0


@dataclass(frozen=True, slots=True)
class OverlongConfig:
    """Penalty 0 up to `max_new_tokens - buffer`, then linear to `-penalty` at the limit. Buffer 0 is off."""

    buffer: int = 0
    penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class AlgoConfig:
    baseline: Literal["mean", "loo"] = "mean"
    scale: Literal["none", "std", "batch", "mean"] = "none"
    ratio: Literal["token", "sequence"] = "token"
    clip: Sequence[float] = (0.2, 0.28)
    clip_c: float = 0.0
    clip_mode: Literal["ppo", "cispo", "dppo"] = "ppo"
    agg: Literal["token", "const", "seq"] = "token"
    kl: float = 0.0
    entropy: float = 0.0
    mask_truncated: bool = True
    drop_zero_variance: bool = True
    overlong: OverlongConfig = OverlongConfig()
    importance: ImportanceConfig = ImportanceConfig()


@dataclass(frozen=True, slots=True)
class BatchConfig:
    tokens_per_micro: int = 4096
    updates_per_batch: int = 1


@dataclass(frozen=True, slots=True)
class OptimConfig:
    lr: float = 5e-4
    betas: Sequence[float] = (0.9, 0.95)
    wd: float = 0.0
    warmup: int = 0
    schedule: Literal["constant", "linear"] = "constant"
    max_grad_norm: float = 1.0


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    every: int = 20
    keep: int = 3


@dataclass(frozen=True, slots=True)
class EvalConfig:
    """`every` 0 evaluates at the start and the end only; `split` holdout needs a key with `holdout:read`."""

    every: int = 0
    split: Literal["eval", "holdout"] = "eval"
    tasks_per_domain: int = 150
    k: int = 1
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class SftConfig:
    """A cold start on gold answers (`source = "gold"`, a key with `answers:read`) or a JSONL of prompt and response.

    `steps` 0 skips it. `tasks_per_domain` is how many gold answers are read: few are enough. `tasks` gives another
    number to single domains, so that an easy one leaves something to learn.
    """

    source: str = "gold"
    steps: int = 0
    batch_size: int = 128
    tasks_per_domain: int = 200
    tasks: Mapping[str, Any] = field(default_factory=dict)
    lr: float = 2e-3
    warmup: int = 20
    wd: float = 0.01


@dataclass(frozen=True, slots=True)
class Config:
    run: RunConfig
    stream: StreamConfig
    model: ModelConfig = ModelConfig()
    rollout: RolloutConfig = RolloutConfig()
    algo: AlgoConfig = AlgoConfig()
    batch: BatchConfig = BatchConfig()
    optim: OptimConfig = OptimConfig()
    ckpt: CheckpointConfig = CheckpointConfig()
    eval: EvalConfig = EvalConfig()
    sft: SftConfig = SftConfig()

    @property
    def stream_name(self) -> str:
        return self.stream.name or self.run.name

    @property
    def min_valid(self) -> int:
        return self.rollout.min_valid or (self.rollout.group_size + 1) // 2

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


OTHER_TABLES = frozenset({"demo"})  # what `taskmill up --demo` reads in the same file
POSITIVE = (
    "run.max_steps",
    "run.threads",
    "model.layers",
    "model.dim",
    "model.heads",
    "stream.patience_s",
    "rollout.group_size",
    "rollout.groups_per_step",
    "rollout.max_new_tokens",
    "rollout.temperature",
    "rollout.max_batch",
    "batch.tokens_per_micro",
    "batch.updates_per_batch",
    "optim.lr",
    "optim.max_grad_norm",
    "ckpt.every",
    "ckpt.keep",
    "eval.k",
    "eval.tasks_per_domain",
    "sft.batch_size",
    "sft.tasks_per_domain",
    "sft.lr",
)


def load(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file and apply `a.b=value` overrides, each value written as in TOML (bare text is text).

    Raises:
        ConfigError: the file is missing or no TOML, a key is unknown, a value has the wrong type or range.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    for override in overrides:
        _override(data, override)
    return parse({key: value for key, value in data.items() if key not in OTHER_TABLES})


def parse(data: Mapping[str, Any]) -> Config:
    """The configuration of nested tables; see `load` for the errors."""
    config = _build(Config, data, "")
    assert isinstance(config, Config)
    _check(config)
    return config


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write it as table.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = key.strip().split(".")
    for name in tables:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise ConfigError(f"--set {override}: {name} is a value, not a table")
    data[last] = value


def _build(cls: type, data: object, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where.rstrip('.') or 'the file'}: must be a table")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in data:
        if key not in fields:
            raise ConfigError(f"{where}{key}: unknown key; known here: {', '.join(sorted(fields))}")
    missing = [name for name, f in fields.items() if _required(f) and name not in data]
    if missing:
        raise ConfigError(f"{where}{missing[0]}: this key is required")
    return cls(**{key: _value(hints[key], value, f"{where}{key}") for key, value in data.items()})


def _required(found: "dataclasses.Field[Any]") -> bool:
    return found.default is dataclasses.MISSING and found.default_factory is dataclasses.MISSING


def _value(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return _build(hint, value, f"{where}.")
    origin = typing.get_origin(hint)
    if origin is Literal:
        if value not in typing.get_args(hint):
            raise ConfigError(f"{where}: must be one of {', '.join(map(repr, typing.get_args(hint)))}, not {value!r}")
        return value
    if origin is not None and issubclass(origin, Mapping):
        return dict(_typed(value, dict, where))
    if origin is not None:
        return tuple(_typed(item, float, f"{where}[{i}]") for i, item in enumerate(_typed(value, list, where)))
    return _typed(value, hint, where)


def _typed(value: Any, wanted: type, where: str) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise ConfigError(f"{where}: must be {wanted.__name__}, not {type(value).__name__} {value!r}")
    return value


def _check(config: Config) -> None:
    for key in POSITIVE:
        table, name = key.split(".")
        if not getattr(getattr(config, table), name) > 0:
            raise ConfigError(f"{key}: must be greater than 0")
    for key, rule, holds in _rules(config):
        if not holds:
            raise ConfigError(f"{key}: {rule}")


def _rules(config: Config) -> Iterator[tuple[str, str, bool]]:
    """Every rule beyond types: the key, the rule in words, whether it holds."""
    model, rollout, correction = config.model, config.rollout, config.algo.importance
    yield "model.dim", "must be an even multiple of model.heads", model.dim % (2 * model.heads) == 0
    yield "stream.domains", "name at least one domain and its weight", bool(config.stream.domains)
    yield "rollout.group_size", "a group of one has no baseline", rollout.group_size > 1
    yield "rollout.min_valid", "must not exceed rollout.group_size", config.min_valid <= rollout.group_size
    yield "algo.clip", "must hold two numbers", len(config.algo.clip) == 2
    yield "optim.betas", "must hold two numbers", len(config.optim.betas) == 2
    pair_or_off = "must hold two numbers, or none to switch it off"
    yield "algo.importance.token_mask", pair_or_off, len(correction.token_mask) in (0, 2)
    yield "algo.importance.seq_mask", pair_or_off, len(correction.seq_mask) in (0, 2)
    counts = config.sft.tasks
    yield "sft.tasks", "maps domains of the stream to whole numbers", _counts(counts, config.stream.domains)
    buffer = config.algo.overlong.buffer
    yield "algo.overlong.buffer", "must lie between 0 and rollout.max_new_tokens", 0 <= buffer <= rollout.max_new_tokens


def _counts(counts: Mapping[str, Any], domains: Mapping[str, Any]) -> bool:
    return all(name in domains and type(count) is int and count >= 0 for name, count in counts.items())
