"""Estimates as people say them: shares in per cent, others in the unit of their question."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from survey.questionnaire.grid import EPOCH
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.table import Row
from survey.store import PublishedSurvey

NOT_ENOUGH = "not enough responses yet"
NEVER_ENOUGH = "not enough responses"
"""Where no more reports can come."""


def not_enough(survey: PublishedSurvey) -> str:
    """What to say instead of figures that may not be shown."""
    return NOT_ENOUGH if survey.state == "open" else NEVER_ENOUGH


@dataclass(frozen=True)
class Amounts:
    """How numbers of one question are written: with decimals and a unit, or as dates.

    >>> Amounts(1, "hours").text(1234.56), Amounts(0, "", is_date=True).text(18262.4)
    ('1,234.6 hours', '1 January 2020')
    """

    decimals: int = 0
    unit: str = ""
    is_date: bool = False

    def number(self, value: float) -> str:
        """The value without its unit, with a real minus sign."""
        if self.is_date:
            return _day(value)
        # Adding 0.0 makes -0.0 positive.
        return f"{round(value, self.decimals) + 0.0:,.{self.decimals}f}".replace("-", "−")

    def text(self, value: float) -> str:
        """The value with its unit."""
        return f"{self.number(value)} {self.unit}".rstrip()


def amounts(question: PublishedQuestion, statistic: str) -> Amounts:
    """A median is a point of the grid; a mean lies between them and has one decimal more."""
    if question.grid is None:
        return Amounts()
    more = 1 if statistic == "mean" else 0
    return Amounts(question.grid.decimals + more, question.grid.unit, question.type == "date")


def _day(value: float) -> str:
    """Days since 1970-01-01 as a date, within the years that have one."""
    days = min(max(round(value), (date.min - EPOCH).days), (date.max - EPOCH).days)
    day = EPOCH + timedelta(days)
    return f"{day.day} {day:%B %Y}"


def row_label(row: Row) -> str:
    """What a row is about: its option or cell, or the mean or median."""
    if row.statistic == "share":
        return row.option_label
    of = " of those who answered" if row.base == "answered" else ""
    return f"{row.statistic.capitalize()}{of}"


def in_words(row: Row, written: Amounts | None = None, *, closed: bool = False) -> str:
    """An estimate as people say it; `written` is how a mean's or median's numbers are.

    `closed` is whether no more reports can come.

    The linear estimate is not clipped, so it may lie outside its interval.
    """
    if row.flag == "not_estimable":
        return "cannot be estimated from this design"
    if row.estimate is None or row.conf_low is None or row.conf_high is None:
        return NEVER_ENOUGH if closed else NOT_ENOUGH
    if row.statistic == "share":
        return (
            f"estimated {percent(row.estimate)}, "
            f"between {percent(row.conf_low)[:-1]} and {percent(row.conf_high)}"
        )
    to = written or Amounts(1)
    if row.conf_low == row.conf_high:
        return f"estimated {to.text(row.estimate)}, no other value is in the interval"
    ends = f"{to.number(row.conf_low)} and {to.text(row.conf_high)}"
    return f"estimated {to.text(row.estimate)}, between {ends}"


def percent(share: float | None) -> str:
    """A share as whole per cent with a real minus sign; nothing for none.

    >>> percent(0.234), percent(-0.012), percent(-0.001)
    ('23%', '−1%', '0%')
    """
    if share is None:
        return ""
    whole = round(share * 100)
    return f"{whole}%".replace("-", "−")


def points(difference: float | None) -> str:
    """A difference of shares in whole percentage points with a real minus sign.

    >>> points(0.234), points(-0.012), points(None)
    ('23', '−1', '')
    """
    return percent(difference)[:-1]


def p_value(p: float) -> str:
    """A p-value as papers write it.

    >>> p_value(0.0123), p_value(0.00001)
    ('p = 0.012', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def exact(share: float) -> str:
    """A share in per cent with one decimal and a real minus sign.

    >>> exact(0.2346), exact(-0.0123), exact(-0.0001)
    ('23.5%', '−1.2%', '0.0%')
    """
    return f"{round(share * 100, 1) + 0.0:.1f}%".replace("-", "−")
