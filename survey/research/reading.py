"""Links from a page of results to the same page read in another way; each reproduces its view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from flask import url_for

from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.shares.binomial import POPULATION, RESPONDENTS
from survey.results.options import INTERVAL_NAMES, OFFERED, USUAL_LEVELS, Wanted, query_of
from survey.store import PublishedSurvey


class Choice(NamedTuple):
    """A link to another way of reading; `chosen` is the one that is shown."""

    label: str
    address: str
    chosen: bool


class Page(NamedTuple):
    """A page of results: its endpoint, what is in its address, and what else its query says."""

    endpoint: str
    slug: str
    version: int
    others: Mapping[str, Any]

    def address(self, wanted: Wanted, **changed: Any) -> str:
        """The page read in a way; `changed` is said instead of what the page says."""
        said = {"slug": self.slug, "version": self.version, **self.others, **query_of(wanted)}
        return url_for(self.endpoint, **{**said, **changed})


def choices(page: Page, wanted: Wanted) -> dict[str, list[Choice]]:
    """The links above the figures, by what they choose; what cannot be combined is not offered."""

    def choice(label: str, **changed: Any) -> Choice:
        other = replace(wanted, **changed)
        return Choice(label, page.address(other), other == wanted)

    found = {
        "Intervals": [choice(f"{100 * level:g}%", level=level) for level in USUAL_LEVELS],
        "Covering": [
            choice("each share", simultaneous=False),
            choice("all at once", simultaneous=True),
        ],
        "Shares of": [
            choice("population", target=POPULATION),
            choice("respondents", target=RESPONDENTS, interval=DEFAULT_INTERVAL),
        ],
    }
    if wanted.target == POPULATION:
        found["Method"] = [choice(INTERVAL_NAMES[name], interval=name) for name in OFFERED]
    return found


def version_choices(page: Page, wanted: Wanted, versions: list[PublishedSurvey]) -> list[Choice]:
    """The versions of a survey, the newest first; nothing where there is only one."""
    if len(versions) < 2:
        return []
    return [
        Choice(
            f"{each.version} ({each.state})",
            page.address(wanted, version=each.version),
            each.version == page.version,
        )
        for each in versions
    ]
