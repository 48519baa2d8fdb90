"""Ids in paths. They match a strict pattern, so that `/v1/tasks/x:nonsense` is never a look-up of "x:nonsense"."""

from typing import Annotated

from fastapi import Path

TaskId = Annotated[str, Path(pattern="^task_[0-9a-f]{32}$")]
VerdictId = Annotated[str, Path(pattern="^ver_[0-9a-f]{32}$")]
KeyId = Annotated[str, Path(pattern="^key_[0-9a-f]{32}$")]
JobId = Annotated[str, Path(pattern="^job_[0-9a-f]{32}$")]
