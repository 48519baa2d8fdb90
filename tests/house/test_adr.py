"""H37: decision records have one form and are numbered without gaps."""

from tree import ROOT

HEADS = ["## Context", "## Decision", "## Consequences", "## Alternatives"]


def test_records_have_one_form() -> None:
    records = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text()
        assert [line for line in text.splitlines() if line.startswith("## ")] == HEADS, path.name
        assert "- Status: " in text
        assert "- Date: " in text
