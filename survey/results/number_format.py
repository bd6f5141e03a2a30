"""Numbers, estimates and missing estimates in the words of pages, terminal and report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import EPOCH
from survey.store import PublishedSurvey

NOT_ENOUGH_YET = "not enough responses yet"
NOT_ENOUGH = "not enough responses"
"""The text for a survey that accepts no more responses."""

TOO_FEW_ANSWERED = "too few answered: any value is possible"
"""The text for an estimate among those who answered if hardly anyone did."""


def not_enough(survey: PublishedSurvey) -> str:
    """Return the text that replaces suppressed estimates."""
    return NOT_ENOUGH_YET if survey.state == "open" else NOT_ENOUGH


@dataclass(frozen=True)
class NumberFormat:
    """Format of a question's numbers: decimals and unit, or dates.

    >>> NumberFormat(1, "hours").text(1234.56), NumberFormat(0, "", is_date=True).text(18262.4)
    ('1,234.6 hours', '1 January 2020')
    """

    decimals: int = 0
    unit: str = ""
    is_date: bool = False

    def number(self, value: float) -> str:
        """Format a value without its unit, with a real minus sign."""
        if self.is_date:
            return _date_text(value)
        # Adding 0.0 makes -0.0 positive.
        return f"{round(value, self.decimals) + 0.0:,.{self.decimals}f}".replace("-", "−")

    def text(self, value: float) -> str:
        """Format a value with its unit."""
        return f"{self.number(value)} {self.unit}".rstrip()


def number_format(question: PublishedQuestion, statistic: str) -> NumberFormat:
    """Return the format of a statistic; a mean gets one decimal more than the grid's values."""
    if question.grid is None:
        return NumberFormat(1 if question.kind.is_ranking else 0)
    extra = 1 if statistic == "mean" else 0
    return NumberFormat(question.grid.decimals + extra, question.grid.unit, question.kind.is_date)


def _date_text(value: float) -> str:
    """Format days since 1970-01-01 as a date, limited to years 1 to 9999."""
    days = min(max(round(value), (date.min - EPOCH).days), (date.max - EPOCH).days)
    day = EPOCH + timedelta(days)
    return f"{day.day} {day:%B %Y}"


def percent(share: float | None) -> str:
    """Format a share as whole percent with a real minus sign; empty for None.

    >>> percent(0.234), percent(-0.012), percent(-0.001)
    ('23%', '−1%', '0%')
    """
    return "" if share is None else f"{round(share * 100)}%".replace("-", "−")


def points(difference: float | None) -> str:
    """Format a difference of shares in whole percentage points with a real minus sign.

    >>> points(0.234), points(-0.012), points(None)
    ('23', '−1', '')
    """
    return percent(difference)[:-1]


def percent_range(low: float | None, high: float | None) -> str:
    """Format an interval of shares.

    >>> percent_range(-0.012, 0.234)
    '−1 to 23%'
    """
    return f"{percent(low)[:-1]} to {percent(high)}"


def share_interval(low: float | None, high: float | None) -> str:
    """Describe the interval of a share without an end of 0 or 100%, which carries no information.

    >>> share_interval(0.04, 0.12), share_interval(0.0, 0.05), share_interval(0.93, 1.0)
    ('4 to 12%', 'at most 5%', 'at least 93%')
    >>> share_interval(0.0, 1.0), share_interval(0.0, 0.004), share_interval(0.998, 1.0)
    ('0 to 100%', 'less than 1%', 'more than 99%')
    """
    ends = percent(low), percent(high)
    if ends == ("0%", "0%"):
        return "less than 1%"
    if ends == ("100%", "100%"):
        return "more than 99%"
    if ends[0] == "0%" and ends[1] != "100%":
        return f"at most {ends[1]}"
    if ends[1] == "100%" and ends[0] != "0%":
        return f"at least {ends[0]}"
    return percent_range(low, high)


def covers_everything(low: float | None, high: float | None) -> bool:
    """Return whether the interval of a share, as it is printed, excludes nothing.

    >>> covers_everything(0.004, 1.0), covers_everything(0.0, 0.99)
    (True, False)
    """
    return percent(low) == "0%" and percent(high) == "100%"


def describe_share(estimate: float | None, low: float | None, high: float | None) -> str:
    """Describe an estimated share and its interval in words.

    The linear estimate may lie outside 0 to 100%. Where it rounds to 0 or 100%, or lies
    outside, only the interval is described.

    >>> describe_share(0.08, 0.04, 0.12), describe_share(-0.012, 0.0, 0.05)
    ('estimated 8%, between 4 and 12%', 'at most 5%')
    >>> describe_share(0.02, 0.0, 0.05), describe_share(1.01, 0.2, 1.0)
    ('estimated 2%, at most 5%', 'at least 20%')
    """
    value, interval = share_texts(estimate, low, high)
    if " to " in interval:
        interval = f"between {interval.replace(' to ', ' and ')}"
    return f"estimated {value}, {interval}" if value else interval


def share_texts(estimate: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Return a share and its interval in words; only the interval if the estimate is impossible.

    >>> share_texts(0.08, 0.04, 0.12), share_texts(-0.012, 0.0, 0.05)
    (('8%', '4 to 12%'), ('', 'at most 5%'))
    """
    is_possible = estimate is not None and 0 < round(estimate * 100) < 100
    return percent(estimate) if is_possible else "", share_interval(low, high)


def format_p_value(p: float) -> str:
    """Format a p-value as papers do.

    >>> format_p_value(0.0123), format_p_value(0.00001)
    ('p = 0.012', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def percent_with_decimal(share: float) -> str:
    """Format a share in percent with one decimal and a real minus sign.

    >>> percent_with_decimal(0.2346), percent_with_decimal(-0.0123), percent_with_decimal(-0.0001)
    ('23.5%', '−1.2%', '0.0%')
    """
    return f"{round(share * 100, 1) + 0.0:.1f}%".replace("-", "−")
