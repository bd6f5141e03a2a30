"""The methods page as data: every number that pages show, explained by what computes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from survey.results.methods.intervals import INTERVALS, anchor_of_interval
from survey.results.methods.mechanisms import (
    CHOICE_MECHANISMS,
    NAMES_IN_WORDS,
    anchor_of_mechanism,
)
from survey.results.methods.more_mechanisms import NUMBER_MECHANISMS, TICK_MECHANISMS
from survey.results.methods.numbers import NUMBERS
from survey.results.methods.privacy import PRIVACY
from survey.results.methods.references import REFERENCES
from survey.results.methods.relations import RELATIONS
from survey.results.methods.section import Chapter, Formula, Section, typeset
from survey.results.methods.shares import SHARES
from survey.results.methods.showing import SHOWING

__all__ = [
    "CHAPTERS",
    "NAMES_IN_WORDS",
    "REFERENCES",
    "SYMBOLS",
    "Chapter",
    "Formula",
    "Section",
    "anchor_of_interval",
    "anchor_of_mechanism",
    "example_of",
    "sections",
    "typeset",
]

CHAPTERS: tuple[Chapter, ...] = (
    SHARES,
    INTERVALS,
    NUMBERS,
    RELATIONS,
    SHOWING,
    PRIVACY,
    CHOICE_MECHANISMS,
    NUMBER_MECHANISMS,
    TICK_MECHANISMS,
)

SYMBOLS: tuple[tuple[str, str], ...] = (
    ("n", "released reports that bear on a number"),
    ("c_j, f_j", "reports that support option j, and their share c_j / n"),
    ("p, q, D", "P(report supports the true option), P(it supports another given one), p − q"),
    ("π_j, π̂_j", "share of people for whom option j is true, and its estimate"),
    ("λ_j", "expected share of reports, q + D π_j"),
    ("k, d", "options of a question, and how many of them one report names"),
    ("T, L", "integer weights of the device’s draw: for the truth, and for any other"),
    ("ε", "epsilon, ln(T/L)"),
    ("z", "standard normal quantile of the level: 1.96 at 95%"),
)


def sections() -> Mapping[str, Section]:
    """Every section by each of its addresses."""
    return {
        anchor: section
        for chapter in CHAPTERS
        for section in chapter.sections
        for anchor in (section.anchor, *section.also)
    }


@cache
def example_of(anchor: str) -> str:
    """A section's worked case, computed once; empty where it has none."""
    example = sections()[anchor].example
    return example() if example else ""
