"""`taskmill execute` and `taskmill sandbox doctor`, offline."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sandbox.contract import Backend
from taskmill.cli import execute, sandbox


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(execute.execute)
    app.add_typer(sandbox.app, name="sandbox")
    return app


def test_execute_prints_what_the_program_prints(app: typer.Typer, tmp_path: Path, grouped: Backend) -> None:
    program, given = tmp_path / "p.py", tmp_path / "in.txt"
    program.write_text("import sys; print(input(), sys.argv[1:])")
    given.write_text("hello\n")
    done = CliRunner().invoke(app, ["execute", str(program), "--stdin", str(given), "--", "a", "b c"])
    assert (done.exit_code, done.stdout) == (0, "hello ['a', 'b c']\n")
    assert "ok (run, exit code 0)" in done.stderr


def test_execute_tells_every_other_end_by_its_exit_code(app: typer.Typer, tmp_path: Path, grouped: Backend) -> None:
    program = tmp_path / "p.py"
    program.write_text("open('out.txt', 'w').write('x'); raise SystemExit(3)")
    done = CliRunner().invoke(app, ["execute", str(program), "--json", "--fetch", "out.txt"])
    found = json.loads(done.stdout)
    assert (done.exit_code, found["status"], found["exit_code"]) == (1, "nonzero_exit", 3)
    assert found["artefacts"][0]["content_base64"] == "eA=="
    assert CliRunner().invoke(app, ["execute", str(program), "--wall", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["execute", str(program), "--language", "cobol"]).exit_code == 2
    assert CliRunner().invoke(app, ["execute", str(tmp_path / "absent.py")]).exit_code == 2


def test_the_doctor_speaks_both_ways(app: typer.Typer, grouped: Backend) -> None:
    done = CliRunner().invoke(app, ["sandbox", "doctor", "--json"])
    assert done.exit_code == 0
    assert "python" in json.loads(done.stdout)["languages"]
    assert "limit      memory by" in CliRunner().invoke(app, ["sandbox", "doctor"]).stdout
    assert CliRunner().invoke(app, ["sandbox", "doctor", "--backend", "none"]).exit_code == 2
