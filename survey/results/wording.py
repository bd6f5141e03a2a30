"""Estimates as people say them: shares in per cent, means in the unit of their question."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from survey.estimator import Proportions, margin_split
from survey.questionnaire.grid import EPOCH
from survey.questionnaire.published import PublishedQuestion
from survey.results.rows import Row

NOT_ENOUGH = "not enough responses yet"


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


def amounts(question: PublishedQuestion) -> Amounts:
    """One decimal more than the grid: a mean lies between its points."""
    if question.grid is None:
        return Amounts()
    return Amounts(question.grid.decimals + 1, question.grid.unit, question.type == "date")


def _day(value: float) -> str:
    """Days since 1970-01-01 as a date, within the years that have one."""
    days = min(max(round(value), (date.min - EPOCH).days), (date.max - EPOCH).days)
    day = EPOCH + timedelta(days)
    return f"{day.day} {day:%B %Y}"


@dataclass(frozen=True)
class Margin:
    """Half the widest interval of a question's shares, and what sampling alone would leave of it.

    >>> print(Margin(0.042, 0.018).text)
    The widest margin is ±4.2 points. Open answers would leave ±1.8; the rest is the randomization.
    """

    whole: float
    sampling: float

    @property
    def text(self) -> str:
        """Both in per cent points, in a sentence or two."""
        return (
            f"The widest margin is ±{100 * self.whole:.1f} points. Open answers would leave "
            f"±{100 * self.sampling:.1f}; the rest is the randomization."
        )


def widest_margin(shares: Proportions) -> Margin:
    """The margin of the option with the widest interval."""
    split = margin_split(shares)
    widest = int(split.margin.argmax())
    return Margin(float(split.margin[widest]), float(split.sampling[widest]))


def row_label(row: Row) -> str:
    """What a row is about: its option, or the mean."""
    if row.statistic == "share":
        return row.option_label
    return "Mean of those who answered" if row.base == "answered" else "Mean"


def in_words(row: Row, written: Amounts | None = None) -> str:
    """An estimate as people say it; `written` is how a mean's numbers are.

    The linear estimate is not clipped, so it may lie outside its interval.
    """
    if row.flag == "not_estimable":
        return "cannot be estimated from this design"
    if row.estimate is None or row.conf_low is None or row.conf_high is None:
        return NOT_ENOUGH
    if row.statistic == "mean":
        to = written or Amounts(1)
        return (
            f"estimated {to.text(row.estimate)}, "
            f"between {to.number(row.conf_low)} and {to.text(row.conf_high)}"
        )
    return (
        f"estimated {percent(row.estimate)}, "
        f"between {percent(row.conf_low)[:-1]} and {percent(row.conf_high)}"
    )


def percent(share: float | None) -> str:
    """A share as whole per cent with a real minus sign; nothing for none.

    >>> percent(0.234), percent(-0.012), percent(-0.001)
    ('23%', '−1%', '0%')
    """
    if share is None:
        return ""
    whole = round(share * 100)
    return f"{whole}%".replace("-", "−")
