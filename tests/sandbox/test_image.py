"""The staged image: made once, by whoever comes first, and readable by every slot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.image import stage

ROOT = Path(__file__).parents[2]
STAGE = "from sandbox.image import stage; print(stage().digest)"


def test_three_processes_that_start_at_once_stage_one_tree(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for folder in (tmp_path, *tmp_path.parents):
        if os.getuid() == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o111) if folder.is_relative_to("/tmp") else pytest.skip(
                f"{folder} is closed to slot uids: give --basetemp below an open folder"
            )
    environment = {**os.environ, "TASKMILL_SANDBOX_CACHE": str(cache)}
    (cache / "stage-of-a-killed-process").mkdir(parents=True)
    processes = [
        subprocess.Popen([sys.executable, "-c", STAGE], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    digests = {process.communicate(timeout=100)[0] for process in processes}
    assert len(digests) == 1
    folders = [path for path in cache.iterdir() if path.is_dir()]
    assert [folder.name for folder in folders] == [digests.pop().decode().strip()]


def test_the_image_holds_no_packages_and_is_open_to_readers_only() -> None:
    image = stage()
    library = next(image.local.glob("lib/python3*"))
    assert not list((library / "site-packages").iterdir())
    assert not list(image.local.rglob("*.pth"))
    for path in image.local.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            assert mode & 0o004, path
            assert not mode & 0o022, path


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.contract import SandboxUnavailable
    from sandbox.image import cache_folder

    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("TASKMILL_SANDBOX_CACHE", str(folder))
    with pytest.raises(SandboxUnavailable, match="TASKMILL_SANDBOX_CACHE"):
        cache_folder()
