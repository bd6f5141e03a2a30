"""Parsing of margins that researchers type or paste, and the messages of parse errors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import DesignError
from survey.results.weighting.request import UNITS, Category, parse_margins
from tests.cases import each_case

THREE = [
    Category("n", "North, upper"),
    Category("s", "South"),
    Category("none", "Prefer not to say", optional=True),
]


@each_case(
    ("text", "unit"),
    [
        ("n, 25\ns, 75", "percent"),
        ("North, upper, 25%\nsouth,75 %", "percent"),
        ("region,share\nn,25\ns,75", "percent"),
        ("n; 25,0\ns; 75,0\n\n", "percent"),
        ("s\t0.75\nn\t0.25", "shares"),
        ('"North, upper",25\n"South",75', "percent"),
        ("n, 1 000\ns, 3 000", "people"),
        ("n,25\ns,75\nPrefer not to say,0", "percent"),
        ("n,25.3\ns,74.9", "percent"),
    ],
)
def test_margins_are_parsed_in_every_common_format(text, unit):
    assert parse_margins(text, THREE, unit) == pytest.approx([0.25, 0.75, 0.0], abs=0.004)


@each_case(
    ("text", "unit", "message"),
    [
        ("n,25\ns,70", "percent", "add up to 95%, not to 100%"),
        ("n,0.25\ns,0.5", "shares", "add up to 0.75, not to 1"),
        ("n,12000\ns,8000", "percent", "add up to 20,000%, not to 100%; if they are numbers of"),
        (
            "n,0.4\ns,0.6",
            "percent",
            "add up to 1%, not to 100%; if they are shares of 1",
        ),
        ("n,25\nwest,75", "percent", "Line 2: “west” is not one of “North, upper”, “South”"),
        ("n,25", "percent", "lack “South”"),
        ("n,25\nn,75", "percent", "Line 2: “North, upper” appears twice"),
        ("n,\ns,", "percent", "Line 1: a number is missing"),
        ("n,25\ns,many", "percent", "Line 2: “many” is not a number"),
        ("n,25\ns,-75", "percent", "Line 2: “-75” is not a number of at least 0"),
        ("n,25%\ns,75%", "people", "is in per cent, not numbers of people"),
        ("n 25\ns 75", "percent", "Line 1: enter a category, a comma and a number"),
        ("n,0\ns,0", "people", "All margins are 0"),
        ("n,25\ns,٧٥", "percent", "is not a number"),
        ("n,25\ns," + "9" * 400, "percent", "too large"),
        ("n,25\ns,75", "litres", "Margins are one of"),
    ],
)
def test_parse_errors_name_the_line(text, unit, message):
    with pytest.raises(DesignError, match=re.escape(message)):
        parse_margins(text, THREE, unit)


@given(st.text(), st.sampled_from(sorted(UNITS)))
def test_any_text_is_parsed_or_rejected_with_a_message(text, unit):
    try:
        margins = parse_margins(text, THREE, unit)
    except DesignError:
        return
    assert sum(margins) == pytest.approx(1)
