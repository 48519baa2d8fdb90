"""Both themes are readable: text 4.5:1, marks of charts 3:1, on every surface they stand on."""

import re

import pytest

from service.dashboard.assets import contents

TOKEN = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)")
SHEET = contents()["page.css"].decode()
TOKENS = {name: (light, dark) for name, light, dark in TOKEN.findall(SHEET)}
TEXTS = ("ink", "muted", "accent", "good", "warn", "bad")
MARKS = (*(f"tone-{n}" for n in range(1, 9)), "edge")


def luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("surface", ["page", "surface", "raised"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_is_readable(name: str, surface: str, theme: int) -> None:
    assert contrast(TOKENS[name][theme], TOKENS[surface][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", MARKS)
def test_marks_are_seen(name: str, theme: int) -> None:
    assert contrast(TOKENS[name][theme], TOKENS["surface"][theme]) >= 3.0


def test_the_text_of_the_main_button_is_readable() -> None:
    assert all(contrast(TOKENS["surface"][theme], TOKENS["accent"][theme]) >= 4.5 for theme in (0, 1))
