"""What a draft's plan says: reports, days, a limit, groups; and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from survey.collect.admission import validate_schedule
from survey.collect.release import utc_today
from survey.disclosure import MINIMUM_REPORTS, OTHER_GROUPS
from survey.errors import DesignError
from survey.estimator.core.arguments import LARGEST_N
from survey.questionnaire.definition import MAX_STRATUM_LENGTH
from survey.questionnaire.drafts.check import Mistake
from survey.research.forms import LIMIT_IN_STEPS, whole_number
from survey.store import Plan, Schedule

USUAL_N = 1_000
USUAL_POINTS = 5.0
MOST_POINTS = 50.0
MOST_STRATA = 200

T = TypeVar("T")


@dataclass(frozen=True)
class Planned:
    """A plan that was read; what is wrong has its usual value, and a mistake beside its field."""

    plan: Plan
    margin: float
    schedule: Schedule
    mistakes: tuple[Mistake, ...]

    @property
    def n(self) -> int:
        """Reports to compute with."""
        return self.plan.n or USUAL_N


def planned_of(typed: Mapping[str, str]) -> Planned:
    """Read what was typed."""
    reader = _Reader(typed)
    n = reader.read("n", _reports, 0)
    points = reader.read("margin", _points, USUAL_POINTS)
    opens, closes = reader.read("opens", _first_day, None), reader.read("closes", _last_day, None)
    most = reader.read("most", _limit, 0)
    strata: dict[str, int] = reader.read("strata", _strata, {})
    schedule = Schedule(opens, closes, most)
    try:
        validate_schedule(schedule)
    except DesignError as error:
        reader.mistakes.append(Mistake(f"{error}", "closes"))
        schedule = Schedule(maximum=most)
    return Planned(Plan(n, strata), points / 100, schedule, tuple(reader.mistakes))


def typed_plan(plan: Plan) -> dict[str, str]:
    """A plan as somebody types it, for the next version."""
    strata = "\n".join(f"{name} {people}" for name, people in plan.strata.items())
    return {"n": str(plan.n or ""), "strata": strata}


class _Reader:
    def __init__(self, typed: Mapping[str, str]) -> None:
        self._typed = typed
        self.mistakes: list[Mistake] = []

    def read(self, name: str, parse: Callable[[str], T], usual: T) -> T:
        text = self._typed[name].strip()
        try:
            return parse(text) if text else usual
        except ValueError as error:
            self.mistakes.append(Mistake(str(error), name))
            return usual


def _reports(text: str) -> int:
    number = whole_number(text.replace(",", "").replace(" ", ""), -1)
    if not 0 <= number <= LARGEST_N:
        raise ValueError(f"Enter a whole number up to {LARGEST_N:,}")
    return number


def _limit(text: str) -> int:
    """A limit in steps: finer ones would tell, one by one, how many reports wait."""
    most = _reports(text)
    if most % MINIMUM_REPORTS:
        raise ValueError(LIMIT_IN_STEPS)
    return most


def _points(text: str) -> float:
    try:
        points = float(text)
    except ValueError:
        points = 0.0
    if not 0 < points <= MOST_POINTS:
        raise ValueError(f"Enter a number of points above 0 and up to {MOST_POINTS:g}, such as 3")
    return points


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("Enter a day such as 2027-01-31") from None


def _first_day(text: str) -> date:
    return _not_past(_day(text), "leave it blank to open at once")


def _last_day(text: str) -> date:
    return _not_past(_day(text), "enter a future day")


def _not_past(day: date, instead: str) -> date:
    if day < utc_today():
        raise ValueError(f"{day} has passed; {instead}")
    return day


def _strata(text: str) -> dict[str, int]:
    """A line for each group: its name, then how many people are invited."""
    found: dict[str, int] = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, people = line.strip().rpartition(" ")
        name = name.strip()
        if not name or whole_number(people, -1) < 0:
            raise ValueError(
                f"“{line.strip()[:60]}” is not a name and a number, such as: North 200"
            )
        if name in found or name == OTHER_GROUPS or len(name) > MAX_STRATUM_LENGTH:
            raise ValueError(f"“{name[:60]}” is repeated, too long or reserved")
        if whole_number(people) < MINIMUM_REPORTS:
            raise ValueError(
                f"{name} has {people} people; at least {MINIMUM_REPORTS} are needed, because in a "
                "smaller group a response could be linked to a person"
            )
        found[name] = whole_number(people)
    if len(found) > MOST_STRATA:
        raise ValueError(f"{len(found)} groups; at most {MOST_STRATA} are allowed")
    return found
