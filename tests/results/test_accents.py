"""Accents of teams: every accepted color is readable in light and in dark mode."""

from __future__ import annotations

import re

import pytest

from survey.errors import DesignError
from survey.results.accents import (
    MINIMUM_CONTRAST,
    PROPOSED_ACCENTS,
    accent_stylesheet,
    accent_variants,
    contrast,
    leading_color,
    parse_accent,
    with_accent,
)
from survey.results.charts import PALETTES, config
from tests.conftest import ROOT

CUBE = [
    f"#{r:02x}{g:02x}{b:02x}"
    for r in range(0, 256, 51)
    for g in range(0, 256, 51)
    for b in range(0, 256, 51)
]


def grounds(name: str, *, dark: bool) -> str:
    """Return a color of the stylesheet."""
    css = (ROOT / "survey/static/research.css").read_text(encoding="utf-8")
    return re.findall(rf"--{name}: (#[0-9a-f]{{6}});", css)[dark]


def test_every_accepted_color_is_readable_on_every_background_in_both_modes():
    accepted = 0
    for color in CUBE:
        try:
            parse_accent(color)
        except DesignError:
            assert contrast(color, "#ffffff") < MINIMUM_CONTRAST
            continue
        accepted += 1
        light, dark = accent_variants(color)
        for name in ("ground", "raised", "careful", "on-accent"):
            assert contrast(light, grounds(name, dark=False)) >= 7, (color, name)
            assert contrast(dark, grounds(name, dark=True)) >= 7, (color, name)
    assert 50 < accepted < len(CUBE)


def test_a_color_that_is_readable_on_white_is_accepted_and_one_below_the_limit_is_not():
    assert parse_accent(" #767676 ") == "#767676"
    assert parse_accent("0A5069") == "#0a5069"
    with pytest.raises(DesignError, match=re.escape("#777777 has a contrast of 4.47:1")) as raised:
        parse_accent("#777777")
    nearest = re.search(r"nearest readable shade is (#\w+)", str(raised.value))[1]
    assert parse_accent(nearest) == nearest
    for text in ("", "red", "#fff", "#12345g", "#0a5069;}", "#" + "1" * 99):
        with pytest.raises(DesignError, match="six hexadecimal digits"):
            parse_accent(text)


def test_the_proposed_accents_are_accepted_and_keep_their_color_on_light_pages():
    assert len(set(PROPOSED_ACCENTS.values())) == 7
    for color in PROPOSED_ACCENTS.values():
        assert parse_accent(color) == color == accent_variants(color).light


def test_a_stylesheet_sets_the_accent_and_the_leading_bar_of_both_modes():
    css = accent_stylesheet("#6b2bda")
    light, dark = accent_variants("#6b2bda")
    assert css.startswith(f":root {{ --accent: {light}; --leading: {leading_color('#6b2bda')}; }}")
    assert "@media screen and (prefers-color-scheme: dark)" in css
    assert f"--accent: {dark};" in css


def test_a_chart_takes_the_accent_for_its_marks_and_keeps_everything_else():
    chart = {"data": 1, "config": config(PALETTES["light"])}
    recolored = with_accent(chart, "#6b2bda")
    marks = {"mark": {"color": "#6b2bda"}, "rule": {"color": "#6b2bda"}}
    assert recolored == {"data": 1, "config": {**chart["config"], **marks}}
    assert with_accent(chart, "") == chart
