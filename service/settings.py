"""Settings: `TASKMILL_*` in the environment, else `taskmill.toml` in the working directory, else the defaults here.

The defaults are the embedded mode: SQLite and all state in `data`. The distributed mode sets `database_url`,
`broker_url` and `secret`; nothing else differs.
"""

import contextlib
import os
import secrets
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource


class Settings(BaseSettings):
    """All settings. A unit stands in each name; the reason for a default stands beside it."""

    model_config = SettingsConfigDict(env_prefix="TASKMILL_", toml_file="taskmill.toml", extra="ignore")

    data: Path = Field(Path(".taskmill"), description="Folder of the database, the keys and the logs.")
    database_url: SecretStr | None = Field(
        None, description="PostgreSQL URL (`postgresql://…`); unset: SQLite in the data folder."
    )
    broker_url: SecretStr | None = Field(
        None, description="Redis or RabbitMQ URL for hints; unset: workers find work by polling the database."
    )
    secret: SecretStr | None = Field(
        None,
        description="Key of all keyed hashes; unset: made once and kept in the data folder. Share it in a cluster.",
    )
    db_synchronous: Literal["NORMAL", "FULL"] = Field(
        "NORMAL", description="SQLite durability. NORMAL survives a killed process; FULL also a power cut."
    )
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    allowed_hosts: str = Field(
        "", description="Host names, with commas between, that the dashboard answers to besides loopback and `host`."
    )
    port: int = Field(8700, ge=0, le=65535, description="Port the API listens on; 0 picks a free one.")
    api_threads: int = Field(24, ge=1, le=200, description="Threads for endpoints; the pool holds 4 connections more.")
    writer_wait_s: float = Field(5.0, gt=0, description="Longest wait for a turn to write on SQLite; then 503.")
    verify_workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="Processes that judge answers."
    )
    sandbox_backend: Literal["local", "unisolated"] = Field(
        "local", description="`unisolated` runs candidate code without isolation; every verdict then names it."
    )
    sandbox_boxes: int = Field(
        default_factory=lambda: 2 * (os.cpu_count() or 1),
        ge=2,
        description="Programs that may run at once; judging by assertions takes two.",
    )
    worker_processes: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="Jobs that one worker runs at once."
    )
    job_lease_s: float = Field(60.0, gt=0, description="A job whose worker is silent this long is given to another.")
    job_poll_s: float = Field(0.1, gt=0, description="How often an embedded worker looks for queued jobs.")
    sweep_s: float = Field(5.0, gt=0, description="How often a worker looks for expired leases and lost hints.")
    job_rescue_s: float = Field(
        60.0, gt=0, description="A job that waits this long is taken from the database, whatever the broker does."
    )
    queue_prefix: str = Field(
        "", max_length=40, description="Put before the names of the broker's queues, to share a broker."
    )
    split_holdout_share: float = Field(0.02, ge=0, le=1, description="Share of new families that go to holdout.")
    split_eval_share: float = Field(0.08, ge=0, le=1, description="Share of new families that go to eval.")
    idempotency_ttl_h: float = Field(24.0, gt=0, description="How long an answered Idempotency-Key is remembered.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL. `postgresql://` means psycopg 3."""
        if self.database_url is None:
            return f"sqlite:///{self.data.resolve() / 'taskmill.db'}"
        url = self.database_url.get_secret_value()
        for scheme in ("postgres://", "postgresql://"):
            if url.startswith(scheme):
                return "postgresql+psycopg://" + url.removeprefix(scheme)
        return url

    @property
    def embedded(self) -> bool:
        """Whether hints have nowhere to go, so that the worker polls the database."""
        return self.broker_url is None

    @cached_property
    def secret_bytes(self) -> bytes:
        """The server's secret; made and kept (0600) in the data folder when none is set."""
        if self.secret is not None:
            return self.secret.get_secret_value().encode()
        path = self.data / "server.secret"
        if not path.exists():
            self.data.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(f".{os.getpid()}")
            draft.touch(0o600)
            draft.write_text(secrets.token_hex(32))
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)  # appears whole or not at all, and the first of two processes wins
            draft.unlink()
        return path.read_bytes()
