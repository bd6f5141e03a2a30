"""What the names in an export mean: each option of each question, and how its reports are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.trust.disclosure import FEWEST_EFFECTIVE, HIDDEN_WIDTH, SHOWN_WIDTH
from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.methods import (
    describe_intervals,
    describe_mechanisms,
    question_methods,
)
from survey.store import PublishedSurvey
from survey.version import __version__


@dataclass(frozen=True)
class CodebookRow:
    """An option of a question, or the values of one that asks for a number or a date.

    is_no_answer  whether it says that there is none: "prefer not to say", "does not apply"
    stated        what the researcher stated of its privacy, way by way
    """

    question_id: str
    question_text: str
    question_type: str
    option_id: str
    option_label: str
    is_no_answer: bool
    asked_if: str
    mechanism: str
    stated: str
    epsilon: float


def codebook(questions: Iterable[PublishedQuestion]) -> list[CodebookRow]:
    """A row for each option of each question, in their order."""
    return [row for question in questions for row in _rows(question)]


def _rows(question: PublishedQuestion) -> Iterator[CodebookRow]:
    stated = ", ".join(f"{way} = {value}" for way, value in question.stated.items())
    condition = question.ask_if
    asked_if = f"{condition.question}: {', '.join(condition.options)}" if condition else ""
    about = (asked_if, MECHANISMS[question.mechanism], stated, question.channel.epsilon)
    if question.type in ("number", "date") and question.grid:
        low, high = question.grid.values[0], question.grid.values[-1]
        values = f"{len(question.grid.values)} values from {low:g} to {high:g} {question.grid.unit}"
        yield CodebookRow(
            question.id, question.text, question.type, "", values.strip(), False, *about
        )
    silent = (question.opt_out, question.not_applicable)
    for option in question.options:
        is_none = option.id in silent
        yield CodebookRow(
            question.id, question.text, question.type, option.id, option.label, is_none, *about
        )


def methods(result: SurveyResult) -> list[tuple[str, str]]:
    """How the figures of an export were made, in pairs of what and how."""
    computed = question_methods(result)
    intervals = describe_intervals(computed, result.wanted)
    return [
        *about(result.survey, result.n),
        ("Release", f"{result.release}"),
        ("Figures", f"{result.wanted.words}; interval of shares: {_interval(result)}"),
        ("Collection", COLLECTION),
        ("Mechanisms", describe_mechanisms(computed)),
        (
            "Estimation",
            "Shares are debiased by inverting the randomization (column estimate, unbiased, may "
            "lie outside 0 to 1); mle is the most likely share within 0 to 1. Intervals hold both "
            f"the sampling and the randomization. {intervals}".strip(),
        ),
        ("Suppression", SUPPRESSION),
        ("Limits", LIMITS),
    ]


def about(survey: PublishedSurvey, n: int) -> list[tuple[str, str]]:
    """What any export says of its survey; `n` reports are in it."""
    definition = survey.definition
    return [
        ("Survey", f"{definition.title} ({survey.slug}, version {survey.version})"),
        ("Definition (SHA-256)", survey.sha256),
        ("Released reports", f"{n:,}"),
        ("State", survey.state),
        ("Total epsilon", format_epsilon(definition.epsilon)),
        ("Software", f"survey {__version__}"),
    ]


COLLECTION = (
    "Every answer was randomized once on the respondent’s own device, by the mechanism that the "
    "codebook names; the server received and stored only the random answers."
)
SUPPRESSION = (
    f"A question is hidden whole while its widest interval is {HIDDEN_WIDTH:.2f} or more or its "
    f"smallest effective number of reports is below {FEWEST_EFFECTIVE}; flag says caution above "
    f"{SHOWN_WIDTH}."
)
LIMITS = (
    "These figures cannot show whether people answered truthfully. Reports of a group must not be "
    "filtered by a reported answer: that is biased."
)


def _interval(result: SurveyResult) -> str:
    chosen = result.wanted.interval
    return f"{chosen} (the usual one)" if chosen == DEFAULT_INTERVAL else chosen
