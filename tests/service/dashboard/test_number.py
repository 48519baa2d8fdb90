"""Every number says its method, time and scope; what is unknown is never 0."""

from datetime import UTC, datetime

import pytest

from service.dashboard.number import Number, read

NOW = datetime(2026, 12, 1, 12, 4, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("found", "text", "tag"),
    [
        ({"value": 1234, "method": "exact"}, "1,234", "exact"),
        ({"value": None, "method": "exact", "reason": "0 of 0"}, "—", "0 of 0"),
        ({"value": None, "method": "exact"}, "—", "not measured"),
        (
            {"value": 52, "method": "histogram", "error": {"kind": "relative", "lo": 0.048, "hi": 0.048}},
            "52",
            "≈ ±4.8 %",
        ),
        ({"value": 10_000, "method": "capped", "error": {"kind": "at_least", "lo": 10_000}}, "10k", "10,000+"),
        ({"value": 50_000, "method": "sample"}, "50k", "sample"),
        (7, "7", "exact"),
        (None, "—", "not measured"),
    ],
)
def test_a_number_of_the_record_carries_its_method(found: object, text: str, tag: str) -> None:
    number = read(found, {"as_of": NOW})
    assert (number.text, number.tag) == (text, tag)
    assert "12:04:31" in number.about


def test_an_interval_of_a_share_is_in_percent() -> None:
    found = {"value": 0.625, "method": "interval", "error": {"kind": "wilson95", "lo": 0.30574, "hi": 0.86316}}
    number = read(found, {"as_of": NOW.isoformat()}, percent=True)
    assert (number.text, number.tag) == ("62.5 %", "95 %: 31–86 %")


def test_what_a_number_leaves_out_is_its_blocks() -> None:
    own = {"value": 1, "as_of": "2026-12-01T08:00:00Z", "n_scanned": 1200, "elapsed_ms": 3.2}
    assert "08:00:00" in read(own, {"as_of": NOW}).about
    assert "1,200 rows read" in read(own, {"as_of": NOW}).about
    assert "as of an unknown time" in Number(1, None).about


def test_a_share_that_is_not_all_never_reads_as_all() -> None:
    assert Number(0.9994, NOW, percent=True).text == "99.9 %"
    assert Number(1.0, NOW, percent=True).text == "100 %"
    assert Number(0.0, NOW, percent=True).text == "0 %"
