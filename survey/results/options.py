"""What a reader asks of the intervals: how sure, which kind, all at once, whose shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from survey.errors import DesignError
from survey.estimator.core.intervals import DEFAULT_INTERVAL, FIXED_POPULATION, INTERVALS
from survey.estimator.shares.binomial import POPULATION, RESPONDENTS, TARGETS

LEAST_LEVEL, MOST_LEVEL = 0.5, 0.999
USUAL_LEVEL = 0.95
USUAL_LEVELS = (0.9, USUAL_LEVEL, 0.99)
"""The levels that pages offer."""

OFFERED = tuple(name for name in INTERVALS if name != FIXED_POPULATION)
"""Intervals that can be asked for; that for these respondents belongs to their target."""

INTERVAL_NAMES: Mapping[str, str] = {
    "feldman-cousins": "usual (Feldman-Cousins)",
    "wilson-hull": "Wilson, extended",
    "wilson": "Wilson, textbook",
    "clopper-pearson": "Clopper-Pearson",
}
"""What the intervals of `OFFERED` are called on pages."""

DECIMAL = re.compile(r"-?[0-9]*\.?[0-9]+")
"""A number as links write it; `float` would also take other scripts' digits, 0_9 and nan."""

YES_NO: Mapping[str, bool] = {"1": True, "0": False}


@dataclass(frozen=True)
class Wanted:
    """A way to read a survey; refuses by name what is out of range.

    level         coverage of each interval
    interval      of shares that have a choice; means, medians and tables have one of their own
    simultaneous  whether all shares of a question are covered at once
    target        whose shares: of the population, or of these respondents alone. Means, medians
                  and cells are always the population's

    >>> Wanted(level=0.9).words
    '90% intervals'
    """

    level: float = USUAL_LEVEL
    interval: str = DEFAULT_INTERVAL
    simultaneous: bool = False
    target: str = POPULATION

    def __post_init__(self) -> None:
        if not LEAST_LEVEL <= self.level <= MOST_LEVEL:
            raise DesignError(
                f"level = {self.level:g} must be from {LEAST_LEVEL} to {MOST_LEVEL}, "
                f"for example {USUAL_LEVEL}"
            )
        if self.interval not in OFFERED:
            raise DesignError(f"interval = {self.interval!r} must be one of {', '.join(OFFERED)}")
        if self.target not in TARGETS:
            raise DesignError(f"target = {self.target!r} must be one of {', '.join(TARGETS)}")
        if self.target == RESPONDENTS and self.interval != DEFAULT_INTERVAL:
            raise DesignError(
                f"interval = {self.interval!r} is one for the population; "
                "leave it out with target = 'respondents'"
            )

    @property
    def percent(self) -> str:
        """The level as people say it."""
        return f"{100 * self.level:.4g}%"

    @property
    def words(self) -> str:
        """What the intervals are, in words."""
        whose = f", {THESE_RESPONDENTS}" if self.target == RESPONDENTS else ""
        at_once = ", all shares of a question at once" if self.simultaneous else ""
        return f"{self.percent} intervals{at_once}{whose}"


THESE_RESPONDENTS = "shares of these respondents alone"


def wanted_from(query: Mapping[str, str]) -> Wanted:
    """Read a link's query; what it does not say is as usual, other keys mean nothing.

    >>> wanted_from({"level": "0.99", "simultaneous": "1"}).words
    '99% intervals, all shares of a question at once'
    """
    said = {field.name: query[field.name] for field in fields(Wanted) if field.name in query}
    level, at_once = said.pop("level", str(USUAL_LEVEL)), said.pop("simultaneous", "0")
    if not DECIMAL.fullmatch(level):
        raise DesignError(f"level = {level[:40]!r} must be a number, for example {USUAL_LEVEL}")
    if at_once not in YES_NO:
        raise DesignError(f"simultaneous = {at_once[:40]!r} must be 1 or 0")
    return Wanted(level=float(level), simultaneous=YES_NO[at_once], **said)


def query_of(wanted: Wanted) -> dict[str, str]:
    """The query of a link to this way of reading; nothing that is as usual.

    >>> query_of(Wanted(level=0.9, simultaneous=True)), query_of(Wanted())
    ({'level': '0.9', 'simultaneous': '1'}, {})
    """
    usual = Wanted()
    changed = {
        field.name: getattr(wanted, field.name)
        for field in fields(Wanted)
        if getattr(wanted, field.name) != getattr(usual, field.name)
    }
    return {name: "1" if value is True else str(value) for name, value in changed.items()}
