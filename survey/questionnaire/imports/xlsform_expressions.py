"""Expressions of XLSForm: the bounds in a constraint, and conditions on one earlier answer.

Source of the syntax: https://docs.getodk.org/form-operators-functions/
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Generic, TypeVar

from survey.questionnaire.imports.assembly import Condition
from survey.questionnaire.imports.earlier_answers import References
from survey.questionnaire.imports.surveyjs_conditions import condition_of

MAX_CONDITION, MAX_CONSTRAINT = 1_000, 300
"""Maximum lengths of expressions: a form has thousands of constraints, and reading takes time."""

MAX_BRACKETS = 3
"""Maximum number of brackets around an expression."""

End = TypeVar("End", Decimal, date)


@dataclass(frozen=True)
class Limit(Generic[End]):
    """One end of a range; a strict one is no answer itself."""

    value: End
    is_strict: bool = False


@dataclass(frozen=True)
class Constraint(Generic[End]):
    """What a constraint demands: a range, and the other parts as they are written.

    `is_relative` says whether an end depends on the day of the answer.
    """

    low: Limit[End] | None = None
    high: Limit[End] | None = None
    remainder: tuple[str, ...] = ()
    is_relative: bool = False


_NUMBER = re.compile(r"-?(?:[0-9]{1,15}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})")
_DAY = re.compile(r"(?:date\(\s*)?['\"]([0-9]{4}-[0-9]{2}-[0-9]{2})['\"]\s*\)?")
_TODAY = re.compile(r"today\(\s*\)(?:\s*([+-])\s*([0-9]{1,6}))?")
_COMPARISON = re.compile(r"(.+?)\s*(<=|>=|<|>)\s*(.+)")
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def number_range(expression: str) -> Constraint[Decimal]:
    """Return the range of numbers in a constraint.

    >>> found = number_range(". >= 0 and (120 > .) and . != 5")
    >>> found.low, found.high, found.remainder
    (Limit(value=Decimal('0'), is_strict=False), Limit(value=Decimal('120'), is_strict=True), \
('. != 5',))
    """
    ends: list[tuple[str, Decimal]] = []
    remainder: list[str] = []
    for part in _parts(expression, "and"):
        operator, value = _compared_with_answer(part)
        if _NUMBER.fullmatch(value):
            ends.append((operator, Decimal(value)))
        else:
            remainder.append(part)
    return Constraint(*_tightest(ends), tuple(remainder))


def date_range(expression: str, today: date) -> Constraint[date]:
    """Return the range of days in a constraint; `today()` means the day of the import.

    >>> found = date_range(". < today() and . >= date('2020-01-01')", date(2026, 1, 2))
    >>> found.low, found.high, found.is_relative
    (Limit(value=datetime.date(2020, 1, 1), is_strict=False), \
Limit(value=datetime.date(2026, 1, 2), is_strict=True), True)
    """
    ends: list[tuple[str, date]] = []
    remainder: list[str] = []
    is_relative = False
    for part in _parts(expression, "and"):
        operator, value = _compared_with_answer(part)
        day = _day(value, today)
        if day is None:
            remainder.append(part)
        else:
            ends.append((operator, day))
            is_relative |= value.startswith("today")
    return Constraint(*_tightest(ends), tuple(remainder), is_relative)


def _day(text: str, today: date) -> date | None:
    try:
        if match := _DAY.fullmatch(text):
            return date.fromisoformat(match[1])
        if match := _TODAY.fullmatch(text):
            return today + timedelta(int(f"{match[1]}{match[2]}") if match[1] else 0)
    except (ValueError, OverflowError):
        return None
    return None


def _compared_with_answer(part: str) -> tuple[str, str]:
    """Return how the answer is compared, and with what: ("<", "5") for ". < 5" and "5 > ."."""
    match = _COMPARISON.fullmatch(part)
    if match and match[1] == ".":
        return match[2], match[3].strip()
    if match and match[3] == ".":
        return _MIRRORED[match[2]], match[1].strip()
    return "", ""


def _tightest(ends: Sequence[tuple[str, End]]) -> tuple[Limit[End] | None, Limit[End] | None]:
    """Return the lowest and the highest allowed values that all comparisons allow."""
    low = max(((value, op == ">") for op, value in ends if op[0] == ">"), default=None)
    high = min(((value, op != "<") for op, value in ends if op[0] == "<"), default=None)
    return low and Limit(*low), high and Limit(high[0], not high[1])


@dataclass(frozen=True)
class Ticks:
    """What a constraint demands of several ticked options.

    `alone` are the values of options that exclude all others.
    """

    maximum: int | None = None
    alone: tuple[str, ...] = ()
    remainder: tuple[str, ...] = ()


_COUNT = re.compile(r"count-selected\(\s*\.\s*\)\s*(<=|<)\s*([0-9]{1,4})")
_ALONE = re.compile(
    r"not\(\s*selected\(\s*\.\s*,\s*['\"]([^'\"]+)['\"]\s*\)\s*"
    r"and\s*count-selected\(\s*\.\s*\)\s*(?:>\s*1|>=\s*2)\s*\)"
)


def ticks(expression: str) -> Ticks:
    """Return the maximum number of ticks in a constraint, and the options that stand alone.

    >>> ticks("count-selected(.) <= 3 and not(selected(., 'no') and count-selected(.) > 1)")
    Ticks(maximum=3, alone=('no',), remainder=())
    """
    maxima: list[int] = []
    alone: list[str] = []
    remainder: list[str] = []
    for part in _parts(expression, "and"):
        if match := _COUNT.fullmatch(part):
            maxima.append(int(match[2]) - (match[1] == "<"))
        elif match := _ALONE.fullmatch(part):
            alone.append(match[1])
        else:
            remainder.append(part)
    return Ticks(min(maxima, default=None), tuple(alone), tuple(remainder))


_SELECTED = re.compile(r"selected\(\s*\$\{([^{}]+)\}\s*,\s*('[^']*'|\"[^\"]*\")\s*\)")
_NOT_SELECTED = re.compile(rf"not\(\s*{_SELECTED.pattern}\s*\)")
_NOT_EQUAL = re.compile(r"not\(\s*\$\{([^{}]+)\}\s*=\s*('[^']*'|\"[^\"]*\")\s*\)")
LABEL_NOTE = "shows the label of an answer where ODK shows its name"
"""ODK's function for labels, `jr:choice-name`, works in calculations only."""

REFERENCES = References(re.compile(r"\$\{ ?([^{}]{1,200}?) ?\}"), note=lambda _: LABEL_NOTE)
"""How XLSForm writes an earlier answer into a text or an expression."""


def condition(expression: str) -> tuple[Condition | None, str]:
    """Return the condition that an expression means, and why it has no counterpart, or "".

    >>> found, _ = condition("${job} = 'a' or selected(${job}, 'b')")
    >>> found.source, [value for value in "abc" if found.accepts(value)]
    ('job', ['a', 'b'])
    """
    if len(expression) > MAX_CONDITION:
        return None, "depends on more than the answer to one question"
    return condition_of([" or ".join(map(_in_surveyjs, _parts(expression, "or")))])


def _in_surveyjs(part: str) -> str:
    """Return a comparison as SurveyJS writes it, whose reader knows what it means."""
    part = _NOT_SELECTED.sub(r"{\1} <> \2", part)
    part = _NOT_EQUAL.sub(r"{\1} <> \2", part)
    part = _SELECTED.sub(r"{\1} contains \2", part)
    return REFERENCES.pattern.sub(r"{\1}", part)


def references(text: str) -> list[str]:
    """Return the questions whose answers a text contains.

    >>> references("At ${ job } in ${town}")
    ['job', 'town']
    """
    return REFERENCES.pattern.findall(text)


def _parts(expression: str, word: str) -> list[str]:
    """Return the parts of an expression between a word outside of brackets and quotes.

    >>> _parts("(. > 0) and not(. = 1 and . = 2)", "and"), _parts("(. > 0 and . < 9)", "and")
    (['. > 0', 'not(. = 1 and . = 2)'], ['. > 0', '. < 9'])
    """
    if len(expression) > (MAX_CONSTRAINT if word == "and" else MAX_CONDITION):
        return [f"{expression[:MAX_CONSTRAINT]}…"]
    parts, depth, start, quote = [], 0, 0, ""
    expression = _without_brackets(" ".join(expression.split()))
    for i, character in enumerate(expression):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif not depth and expression.startswith(f" {word} ", i):
            parts.append(expression[start:i])
            start = i + len(word) + 2
    return [_without_brackets(part) for part in (*parts, expression[start:]) if part.strip()]


def _without_brackets(text: str) -> str:
    """Return a text without brackets around all of it."""
    text = text.strip()
    for _ in range(MAX_BRACKETS):
        if text.startswith("(") and text.endswith(")") and _closes_at_end(text):
            text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth:
            return i == len(text) - 1
    return False
