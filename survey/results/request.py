"""What a link requests: the interval options, and the base of every analysis's parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from survey.errors import DesignError
from survey.estimator.core.intervals import DEFAULT_INTERVAL, FIXED_POPULATION, INTERVALS
from survey.estimator.shares.proportions import POPULATION, RESPONDENTS, TARGETS

MIN_LEVEL, MAX_LEVEL = 0.5, 0.999
DEFAULT_LEVEL = 0.95
LEVEL_CHOICES = (0.9, DEFAULT_LEVEL, 0.99)
"""The confidence levels that pages offer."""

INTERVAL_CHOICES = tuple(name for name in INTERVALS if name != FIXED_POPULATION)
"""Interval methods a reader can choose; the target "respondents" has a separate method."""

INTERVAL_NAMES: Mapping[str, str] = {
    "feldman-cousins": "Feldman-Cousins (default)",
    "wilson-hull": "Wilson, extended",
    "wilson": "Wilson, textbook",
    "clopper-pearson": "Clopper-Pearson",
}
"""The names of `INTERVAL_CHOICES` on pages."""

RESPONDENTS_ONLY = "shares of these respondents only"

DECIMAL = re.compile(r"-?[0-9]*\.?[0-9]+")
"""A number in a link. `float` would also accept digits of other scripts, 0_9 and nan."""

YES_NO: Mapping[str, bool] = {"1": True, "0": False}


@dataclass(frozen=True)
class Request:
    """The parameters of an analysis; its fields are the keys of a link's query."""

    required: ClassVar[tuple[str, ...]] = ()
    """Fields without which there is nothing to compute."""

    file_stem_format: ClassVar[str] = ""

    @classmethod
    def parse(cls, query: Any) -> Self:
        """Parse a link's query; missing parameters are empty."""
        return cls(**{field.name: query.get(field.name, "") for field in fields(cls)})

    @property
    def is_complete(self) -> bool:
        """Whether there is enough to compute."""
        return all(getattr(self, name).strip() for name in self.required)

    @property
    def query(self) -> dict[str, Any]:
        """The query of a link that repeats this request."""
        return asdict(self)

    @property
    def file_stem(self) -> str:
        """The part of a file name that states what the file is about."""
        return self.file_stem_format.format(**vars(self))


@dataclass(frozen=True)
class IntervalOptions:
    """How intervals are computed. Values out of range raise DesignError.

    level         coverage of each interval
    interval      method for shares; means, medians and tables have one method each
    simultaneous  whether the intervals of all shares of a question cover simultaneously
    target        "population", or "respondents" for the shares of these respondents only;
                  means, medians and cells always describe the population

    >>> IntervalOptions(level=0.9).description
    '90% intervals'
    """

    level: float = DEFAULT_LEVEL
    interval: str = DEFAULT_INTERVAL
    simultaneous: bool = False
    target: str = POPULATION

    def __post_init__(self) -> None:
        if not MIN_LEVEL <= self.level <= MAX_LEVEL:
            raise DesignError(
                f"level = {self.level:g} must be from {MIN_LEVEL} to {MAX_LEVEL}, "
                f"for example {DEFAULT_LEVEL}"
            )
        if self.interval not in INTERVAL_CHOICES:
            choices = ", ".join(INTERVAL_CHOICES)
            raise DesignError(f"interval = {self.interval!r} must be one of {choices}")
        if self.target not in TARGETS:
            raise DesignError(f"target = {self.target!r} must be one of {', '.join(TARGETS)}")
        if self.target == RESPONDENTS and self.interval != DEFAULT_INTERVAL:
            raise DesignError(
                f"interval = {self.interval!r} applies to the population only; "
                "leave it out with target = 'respondents'"
            )

    @property
    def percent(self) -> str:
        """The confidence level in percent."""
        return f"{100 * self.level:.4g}%"

    @property
    def description(self) -> str:
        """The intervals in words."""
        simultaneous = ", simultaneous for all shares of a question" if self.simultaneous else ""
        target = f", {RESPONDENTS_ONLY}" if self.target == RESPONDENTS else ""
        return f"{self.percent} intervals{simultaneous}{target}"


DEFAULT_OPTIONS = IntervalOptions()
"""The options of a link without parameters. They also decide what is suppressed."""


def parse_options(query: Mapping[str, str]) -> IntervalOptions:
    """Parse a link's query; missing keys take their defaults, unknown keys are ignored.

    >>> parse_options({"level": "0.99", "simultaneous": "1"}).description
    '99% intervals, simultaneous for all shares of a question'
    """
    names = [field.name for field in fields(IntervalOptions)]
    values = {name: query[name] for name in names if name in query}
    level = values.pop("level", str(DEFAULT_LEVEL))
    simultaneous = values.pop("simultaneous", "0")
    if not DECIMAL.fullmatch(level):
        raise DesignError(f"level = {level[:40]!r} must be a number, for example {DEFAULT_LEVEL}")
    if simultaneous not in YES_NO:
        raise DesignError(f"simultaneous = {simultaneous[:40]!r} must be 1 or 0")
    return IntervalOptions(level=float(level), simultaneous=YES_NO[simultaneous], **values)


def options_to_query(options: IntervalOptions) -> dict[str, str]:
    """Return the query of a link with these options; defaults are left out.

    >>> options_to_query(IntervalOptions(level=0.9, simultaneous=True))
    {'level': '0.9', 'simultaneous': '1'}
    >>> options_to_query(IntervalOptions())
    {}
    """
    values = {field.name: getattr(options, field.name) for field in fields(IntervalOptions)}
    return {
        name: "1" if value is True else str(value)
        for name, value in values.items()
        if value != getattr(DEFAULT_OPTIONS, name)
    }
