"""The command line as a new user meets it: wrong arguments, missing parts, exit codes, nothing but one clear line."""

import json
import sys
from pathlib import Path

import pytest

from processes import run_to_end

WRONG = [
    (("nonsense",), 2, "No such command"),
    (("up", "--once"), 2, "--demo"),
    (("import", "/no/such/file"), 2, "no such file"),
    (("verify", "--verifier", "nope", "--input", "/dev/null"), 2, "one of"),
    (("execute", "--language", "cobol", "/etc/hostname"), 2, "known are"),
    (("train", "/no/such.toml"), 2, "no such file"),
    (("keys", "create", "x", "--scope", "nope"), 2, "unknown scope"),
    (("keys", "list"), 1, "taskmill db upgrade"),
    (("db", "status"), 1, "taskmill db upgrade"),
    (("api",), 1, "taskmill db upgrade"),
    (("worker",), 1, "taskmill db upgrade"),
    (("stats", "--url", "http://127.0.0.1:1", "--key", "tm_x"), 1, "no answer"),
    (("stats",), 2, "no key"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=[" ".join(a[0][:2]) for a in WRONG])
def test_what_is_wrong_is_said_in_a_line(arguments: tuple[str, ...], code: int, words: str, tmp_path: Path) -> None:
    done = run_to_end(*arguments, within_s=60, TASKMILL_DATA=str(tmp_path / "none"))
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_setting_is_named(tmp_path: Path) -> None:
    done = run_to_end("doctor", TASKMILL_PORT="abc", TASKMILL_DATA=str(tmp_path))
    assert done.returncode == 2
    assert "TASKMILL_PORT" in done.stderr


def test_the_database_is_made_and_keys_are_shown_once(tmp_path: Path) -> None:
    environment = {"TASKMILL_DATA": str(tmp_path)}
    assert run_to_end("db", "upgrade", **environment).returncode == 0
    assert json.loads(run_to_end("db", "status", "--json", **environment).stdout)["current"]
    made = json.loads(run_to_end("keys", "create", "me", "--scope", "verify", "--json", **environment).stdout)
    listed = run_to_end("keys", "list", **environment).stdout
    assert made["id"] in listed
    assert made["key"] not in listed
    assert run_to_end("keys", "revoke", made["id"], **environment).returncode == 0
    assert "revoked" in run_to_end("keys", "list", **environment).stdout
    assert run_to_end("keys", "revoke", "key_0", **environment).returncode == 1


def test_the_doctor_says_what_is_there(tmp_path: Path) -> None:
    done = run_to_end("doctor", "--json", TASKMILL_DATA=str(tmp_path))
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["import names"]["ok"]
    assert checks["isolation"]["ok"]
    assert not checks["database"]["ok"]
    assert sys.version_info >= (3, 11)
