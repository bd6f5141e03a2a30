"""The plan of a draft: expected responses, dates, a limit and groups, parsed from its fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TypeVar

from survey.collect.publication import validate_schedule
from survey.collect.release import utc_today
from survey.disclosure import MINIMUM_REPORTS, OTHER_GROUPS
from survey.errors import ChannelError, DesignError
from survey.estimator.core.arguments import LARGEST_N
from survey.mechanism.exact_numbers import exact_fraction
from survey.questionnaire.definition import MAX_STRATUM_LENGTH
from survey.questionnaire.drafts.check import Mistake
from survey.research.forms import whole_number
from survey.results.plan.compute import DEFAULT_N
from survey.store import Plan, Schedule

DEFAULT_POINTS = 5.0
MAX_POINTS = 50.0
MAX_STRATA = 200
MAX_TOTAL = 100
MAX_CROSSINGS = 20

T = TypeVar("T")


@dataclass(frozen=True)
class DraftPlan:
    """A parsed plan; an invalid field has its default value and a mistake.

    `total` is the maximum epsilon of a design, `crossings` the ids of questions to
    cross-tabulate.
    """

    plan: Plan
    margin: float
    schedule: Schedule
    mistakes: tuple[Mistake, ...]
    total: Fraction | None = None
    crossings: tuple[tuple[str, str], ...] = ()

    @property
    def n(self) -> int:
        """Number of responses to compute with."""
        return self.plan.n or DEFAULT_N


def parse_plan(typed: Mapping[str, str]) -> DraftPlan:
    """Parse the fields of a plan."""
    mistakes: list[Mistake] = []

    def read(name: str, parse: Callable[[str], T], default: T) -> T:
        text = typed[name].strip()
        try:
            return parse(text) if text else default
        except ValueError as error:
            mistakes.append(Mistake(str(error), name))
            return default

    n = read("n", _reports, 0)
    points = read("margin", _points, DEFAULT_POINTS)
    total: Fraction | None = read("total", _total, None)
    crossings: tuple[tuple[str, str], ...] = read("crossings", _crossings, ())
    opens = read("opens", lambda text: _future_day(text, "leave it blank to open at once"), None)
    closes = read("closes", lambda text: _future_day(text, "enter a future day"), None)
    maximum = read("most", _reports, 0)
    strata: dict[str, int] = read("strata", _strata, {})
    schedule = Schedule(opens, closes, maximum)
    try:
        validate_schedule(schedule)
    except DesignError as error:
        mistakes.append(Mistake(f"{error}", "closes"))
        schedule = Schedule(maximum=maximum)
    plan = Plan(n, strata)
    return DraftPlan(plan, points / 100, schedule, tuple(mistakes), total, crossings)


def plan_fields(plan: Plan) -> dict[str, str]:
    """Return a plan as typed in its fields, for the next version."""
    strata = "\n".join(f"{name} {people}" for name, people in plan.strata.items())
    return {"n": str(plan.n or ""), "strata": strata}


def _reports(text: str) -> int:
    number = whole_number(text.replace(",", "").replace(" ", ""), -1)
    if not 0 <= number <= LARGEST_N:
        raise ValueError(f"Enter a whole number up to {LARGEST_N:,}")
    return number


def _points(text: str) -> float:
    try:
        points = float(text)
    except ValueError:
        points = 0.0
    if not 0 < points <= MAX_POINTS:
        raise ValueError(f"Enter a number of points above 0 and up to {MAX_POINTS:g}, such as 3")
    return points


def _total(text: str) -> Fraction:
    try:
        total = exact_fraction(text.replace(",", "."), "total")
    except ChannelError:
        total = Fraction(0)
    if not 0 < total <= MAX_TOTAL:
        raise ValueError(f"Enter an epsilon above 0 and up to {MAX_TOTAL}, such as 2.2")
    return total


def _crossings(text: str) -> tuple[tuple[str, str], ...]:
    """Parse one pair of ids per line."""
    pairs = []
    for line in filter(str.strip, text.splitlines()):
        ids = re.findall(r"[^\s,]+", line)
        if len(set(ids)) != 2 or len(ids) != 2:
            raise ValueError(
                f"“{line.strip()[:60]}” must be two different ids, such as: smokes, drinks"
            )
        pairs.append((ids[0], ids[1]))
    if len(pairs) > MAX_CROSSINGS:
        raise ValueError(f"Enter at most {MAX_CROSSINGS} pairs (found {len(pairs)})")
    return tuple(pairs)


def _future_day(text: str, instead: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueError("Enter a day such as 2027-01-31") from None
    if day < utc_today():
        raise ValueError(f"{day} has passed; {instead}")
    return day


def _strata(text: str) -> dict[str, int]:
    """Parse one group per line: its name, then the number of people to invite."""
    strata: dict[str, int] = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, people = line.strip().rpartition(" ")
        name = name.strip()
        if not name or whole_number(people, -1) < 0:
            raise ValueError(
                f"“{line.strip()[:60]}” is not a name and a number, such as: North 200"
            )
        if name in strata or name == OTHER_GROUPS or len(name) > MAX_STRATUM_LENGTH:
            raise ValueError(f"“{name[:60]}” is repeated, too long or reserved")
        if whole_number(people) < MINIMUM_REPORTS:
            raise ValueError(
                f"{name} has {people} people; at least {MINIMUM_REPORTS} are needed, because in a "
                "smaller group a response could be linked to a person"
            )
        strata[name] = whole_number(people)
    if len(strata) > MAX_STRATA:
        raise ValueError(f"{len(strata)} groups; at most {MAX_STRATA} are allowed")
    return strata
