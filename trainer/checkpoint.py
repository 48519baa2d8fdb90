"""Checkpoints: a directory that is complete or is not there.

Files are written to a temporary directory and synced, a MANIFEST with their hashes comes last, then one rename. The
acknowledgement of the steps follows only after that, so nothing is marked as trained that a crash un-trains. A resume
takes the newest directory whose MANIFEST verifies, whatever the names say.
"""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trainer.contract import TrainerError
from trainer.ledger import Ledger

Notice = Callable[[str], None]
MANIFEST, LATEST = "MANIFEST.json", "LATEST"


class State(NamedTuple):
    """What `load` answers; `tensors` maps file stems (model, optimizer, reference) to their state dicts."""

    ledger: Ledger
    tensors: dict[str, Any]
    config: dict[str, Any]
    path: Path


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save(
    folder: Path, ledger: Ledger, tensors: dict[str, Any], config: dict[str, Any], notice: Notice = lambda name: None
) -> Path:
    """Write `step-N`; when this returns, a power cut cannot lose it. `notice` hears of each file, for fault tests."""
    temporary, final = folder / f"tmp-{ledger.step}", folder / f"step-{ledger.step}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, value in {**tensors, "rng": _random_state()}.items():
        torch.save(value, temporary / f"{name}.pt")
        notice(f"checkpoint:{name}.pt")
    for name, data in (("ledger", ledger.as_json()), ("config", config)):
        (temporary / f"{name}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        notice(f"checkpoint:{name}.json")
    files = sorted(temporary.iterdir())
    manifest = {path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for path in files}
    (temporary / MANIFEST).write_text(json.dumps({"step": ledger.step, "files": manifest}), encoding="utf-8")
    for path in [*files, temporary / MANIFEST, temporary]:
        _sync(path)
    notice("checkpoint:written")
    if final.exists():
        # A step is replayed bit by bit: what stands there is either equal or broken.
        shutil.rmtree(final)
    temporary.rename(final)
    _sync(folder)
    notice("checkpoint:renamed")
    _point(folder, final.name)
    return final


def _point(folder: Path, name: str) -> None:
    draft = folder / f"{LATEST}.tmp"
    draft.write_text(name + "\n", encoding="utf-8")
    _sync(draft)
    draft.replace(folder / LATEST)
    _sync(folder)


def _random_state() -> dict[str, Any]:
    return {"torch": torch.get_rng_state(), "python": repr(random.getstate())}


def _steps(folder: Path) -> list[tuple[int, Path]]:
    found = []
    for path in folder.glob("step-*"):
        number = path.name.removeprefix("step-")
        if number.isdigit():
            found.append((int(number), path))
    return sorted(found, reverse=True)


def verifies(path: Path) -> bool:
    """Whether every file of the MANIFEST is there, whole."""
    try:
        files = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
        return bool(files) and all(_sha256(path / name) == entry["sha256"] for name, entry in files.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint of a run's folder."""
    return next((path for _, path in _steps(folder) if verifies(path)), None)


def load(path: Path) -> State:
    """Read a checkpoint and set the random state to it.

    Raises:
        TrainerError: the checkpoint is not whole.
    """
    if not verifies(path):
        raise TrainerError(f"{path}: no whole checkpoint (its MANIFEST is missing or does not fit)")
    tensors = {file.stem: torch.load(file, weights_only=True) for file in sorted(path.glob("*.pt"))}
    state = tensors.pop("rng")
    torch.set_rng_state(state["torch"])
    ledger = Ledger.from_json(json.loads((path / "ledger.json").read_text(encoding="utf-8")))
    return State(ledger, tensors, json.loads((path / "config.json").read_text(encoding="utf-8")), path)


def prune(folder: Path, keep: int, spare: Iterable[Path] = ()) -> None:
    """Delete all but the newest `keep` checkpoints, and what a crash left half-written."""
    kept = {path for _, path in _steps(folder)[:keep]} | set(spare)
    for _, path in _steps(folder):
        if path not in kept:
            shutil.rmtree(path)
    for path in folder.glob("tmp-*"):
        shutil.rmtree(path)
