"""`taskmill verify`: one answer a line, in order, whatever the lines hold."""

import json
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from taskmill.cli.verify import verify

app = typer.Typer()
app.command()(verify)


def run(*args: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, args, input=text)


def line(name: str, response: Any, **more: Any) -> str:
    return json.dumps({"id": name, "response": response, "reference": {"answer": "7"}, "params": {}, **more})


def test_each_line_is_answered_in_order(tmp_path: Path) -> None:
    source, output = tmp_path / "cases.jsonl", tmp_path / "verdicts.jsonl"
    source.write_text("\n".join([line("a", "7"), "", line("b", "8"), line("c", ""), line("d", None)]) + "\n")
    done = run("--verifier", "numeric", "--input", str(source), "--output", str(output))
    assert done.exit_code == 0, done.output
    found = [json.loads(text) for text in output.read_text().splitlines()]
    assert [(v["id"], v["outcome"], v["reward"]) for v in found] == [
        ("a", "verified", 1.0), ("b", "failed", 0.0), ("c", "format_error", -1.0), ("d", "format_error", -1.0)
    ]  # fmt: skip
    assert {"process", "code", "extracted", "detail", "tier"} <= set(found[0])


def test_a_bad_line_costs_only_itself() -> None:
    lines = [line("a", "7"), '{"id": "torn", "resp', "[1]", '{"id": "none"}', line("odd", 5),
             line("lim", "7", limits={"x": 1}), line("p", "7", params=[]), line("b", "7")]  # fmt: skip
    done = run("--verifier", "numeric", "--input", "-", text="\n".join(lines))
    assert done.exit_code == 1
    found = [json.loads(text) for text in done.stdout.splitlines()]
    assert [v["id"] for v in found] == ["a", "torn", None, "none", "odd", "lim", "p", "b"]
    assert ["error" in v for v in found] == [False, True, True, True, True, True, True, False]


def test_wrong_usage_exits_with_2(tmp_path: Path) -> None:
    assert run("--verifier", "nonsense", "--input", "-", text="").exit_code == 2
    assert run("--verifier", "numeric", "--input", str(tmp_path / "missing")).exit_code == 2


def test_nothing_in_is_nothing_out() -> None:
    done = run("--verifier", "math", "--input", "-", text="")
    assert (done.exit_code, done.stdout) == (0, "")
