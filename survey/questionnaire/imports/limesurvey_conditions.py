"""The conditions of LimeSurvey's questions: equations, and the rows of old files.

Sources: https://www.limesurvey.org/manual/ExpressionScript_-_Presentation and
https://www.limesurvey.org/manual/SGQA_identifier
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from survey.questionnaire.imports.assembly import Condition, comparison
from survey.questionnaire.imports.limesurvey_files import LimeQuestion, LimeSurvey

TERM = re.compile(
    r"""[(\s]*(?P<name>[0-9A-Za-z_]+)(?:\.(?:NAOK|shown|value|valueNAOK|code))?\s*
    (?P<operator>==|=|!=|<>|<=|>=|<|>|\b(?:eq|ne|le|ge|lt|gt)\b)\s*
    (?P<value>"[^"]*"|'[^']*'|-?[0-9]+(?:\.[0-9]+)?)[)\s]*""",
    re.VERBOSE,
)
"""A comparison of one answer with one value."""

WORDS = {"eq": "=", "ne": "!=", "le": "<=", "ge": ">=", "lt": "<", "gt": ">"}
"""The words for operators in equations."""

OPERATORS = ("==", "=", "!=", "<>", "<=", ">=", "<", ">")

SGQA = re.compile(r"\+?[0-9]+X[0-9]+X([0-9]+)([0-9A-Za-z_]*)")
"""The old name of an answer: the ids of survey, group and question, and a subquestion's code."""

ANSWER = re.compile(r"\s*(INSERTANS:)?([0-9A-Za-z_]+)(\.shown|\.NAOK)?\s*")
"""An expression in a text that shows an answer."""

MAX_CONDITION = 1_000
"""Maximum length of an equation that is read."""

SEVERAL = "depends on more than the answer to one question"

Reading = tuple[Condition | None, str]
"""A condition, or None with the reason why there is no counterpart; "" if there is none at all."""


def is_condition(relevance: str) -> bool:
    """Return whether a relevance equation is more than "always"."""
    return relevance.strip("() ") not in ("", "1")


def label_note(expression: str) -> str:
    """Return what changes if an expression shows the label of an answer to a list.

    >>> label_note("job.shown"), label_note("job")
    ('', 'shows the label of an answer where LimeSurvey shows its code')
    """
    match = ANSWER.fullmatch(expression)
    shows_label = match is not None and (match[1] or match[3] == ".shown")
    return "" if shows_label else "shows the label of an answer where LimeSurvey shows its code"


class Conditions:
    """Reads the conditions of a survey's questions, and the answers that their texts show."""

    def __init__(self, survey: LimeSurvey) -> None:
        self._codes_by_id = survey.codes
        self._codes = {question.code for group in survey.groups for question in group.questions}

    def of(self, question: LimeQuestion, group_relevance: str) -> Reading:
        """Return the condition of a question in a group."""
        relevance = question.settings.get("relevance", "")
        equations = list(dict.fromkeys(filter(is_condition, (group_relevance, relevance))))
        if len(equations) > 1:
            return None, "depends on several conditions"
        if equations:
            condition, why = self._from_equation(equations[0])
            if condition or not question.conditions:
                return condition, why
        if not question.conditions:
            return None, ""
        # Rows that compare the answer to one question are alternatives.
        return self._from_terms(
            [
                (row.get("cfieldname", ""), row.get("method", "=="), row.get("value", ""))
                for row in question.conditions
            ]
        )

    def _from_equation(self, equation: str) -> Reading:
        if len(equation) > MAX_CONDITION:
            return None, SEVERAL
        parts = [TERM.fullmatch(part) for part in re.split(r"\bor\b|\|\|", equation.strip("{} "))]
        terms = [(match["name"], match["operator"], match["value"]) for match in parts if match]
        return self._from_terms(terms) if len(terms) == len(parts) else (None, SEVERAL)

    def _from_terms(self, terms: Sequence[tuple[str, str, str]]) -> Reading:
        """Return the condition that one of these comparisons is true, all of the same question."""
        sources: set[str] = set()
        tests: list[Callable[[Any], bool]] = []
        for name, sign, quoted in terms:
            source, part = self._source(name.strip())
            operator, value = WORDS.get(sign.strip(), sign.strip()), quoted.strip("\"'")
            is_tick = operator in ("=", "==") and value == "Y"
            if not source or operator not in OPERATORS or (part and not is_tick):
                return None, SEVERAL
            sources.add(source)
            tests.append(comparison("=" if part else operator, [part or value]))
        if len(sources) != 1:
            return None, SEVERAL
        return Condition(sources.pop(), lambda answer: any(test(answer) for test in tests)), ""

    def answer_name(self, expression: str) -> str:
        """Return the name under which the answer that an expression shows was imported, or ""."""
        match = ANSWER.fullmatch(expression)
        return "_".join(filter(None, self._source(match[2]))) if match else ""

    def _source(self, name: str) -> tuple[str, str]:
        """Return the question that a name means, and the code of its option; "" if unknown."""
        if old := SGQA.fullmatch(name):
            digits, suffix = old[1], old[2]
            for end in range(min(len(digits), 15), 0, -1):
                if code := self._codes_by_id.get(digits[:end]):
                    return code, digits[end:] + suffix
            return "", ""
        if name in self._codes:
            return name, ""
        code, _, part = name.partition("_")
        return (code, part) if code in self._codes and part else ("", "")
