"""The conditions of SurveyJS's elements.

Source: https://surveyjs.io/form-library/documentation/design-survey/conditional-logic
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from survey.questionnaire.imports.assembly import Condition, comparison

MAX_CONDITION = 1_000
"""Maximum length of a condition: reading it takes time that grows with the square of its length."""

PART = re.compile(
    r"""\{([^{}]+)\}\s*(==|=|equal|contains|anyof|<=|>=|<>|!=|<|>)\s*
    (\[[^\]]*\]|'[^']*'|"[^"]*"|[^\s]+)""",
    re.VERBOSE,
)
VALUE = re.compile(r"""'([^']*)'|"([^"]*)"|([^\s,\[\]]+)""")


EQUAL, UNEQUAL = ("==", "=", "equal"), ("<>", "!=")


def condition_of(expressions: Sequence[str]) -> tuple[Condition | None, str]:
    """Return the condition that expressions mean, and why they have no counterpart, or ""."""
    if not expressions:
        return None, ""
    if len(expressions) > 1:
        return None, "depends on several conditions"
    if len(expressions[0]) > MAX_CONDITION:
        return None, "depends on more than the answer to one question"
    parts = [PART.fullmatch(part.strip()) for part in re.split(r"\s+or\s+|\|\|", expressions[0])]
    matches = [part for part in parts if part]
    if len(matches) < len(parts) or len({match[1].strip() for match in matches}) > 1:
        return None, "depends on more than the answer to one question"
    terms = [(match[2], list(_values(match[3]))) for match in matches]
    tests = [comparison(operator, values) for operator, values in terms]
    condition = Condition(
        matches[0][1].strip(),
        lambda answer: any(test(answer) for test in tests),
        is_exact=any(
            operator in EQUAL or (operator == "contains" and len(values) > 1)
            for operator, values in terms
        ),
        is_absent=any(operator in UNEQUAL for operator, _ in terms),
    )
    return condition, ""


def _values(text: str) -> Iterator[str]:
    for single, double, bare in VALUE.findall(text):
        yield single or double or bare
