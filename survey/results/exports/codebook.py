"""The codebook of an export: what its names mean, and how its results were computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from survey.estimator.core.intervals import DEFAULT_INTERVAL
from survey.estimator.trust.disclosure import HIDDEN_WIDTH, MIN_EFFECTIVE, SHOWN_WIDTH
from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.sentences import caveats, independence_sentence
from survey.results.crosstab.table import CrosstabResult
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.methods import (
    describe_intervals,
    describe_mechanisms,
    question_methods,
)
from survey.store import PublishedSurvey
from survey.version import __version__

COLLECTION = (
    "The respondents’ devices randomized every answer once, using the mechanism named in the "
    "codebook. The server received and stored only the randomized reports."
)
SUPPRESSION = (
    "All results of a question are suppressed while its widest interval is "
    f"{HIDDEN_WIDTH:.2f} or wider or its smallest effective sample size is below "
    f"{MIN_EFFECTIVE}. The column flag says caution while the widest interval exceeds "
    f"{SHOWN_WIDTH:.2f}."
)
LIMITS = (
    "The results do not show whether respondents answered truthfully. Do not filter reports by a "
    "reported answer: the results would be biased."
)


@dataclass(frozen=True)
class CodebookRow:
    """One option of a question, or the range of values of a number or date question.

    is_no_answer  True for opt-outs: "prefer not to say", "does not apply"
    stated        the privacy settings that the researcher entered
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
    """Return a row for each option of each question, in their order."""
    return [row for question in questions for row in _question_rows(question)]


def methods_sheet(result: SurveyResult) -> list[tuple[str, str]]:
    """Return how the results of an export were computed, as pairs of topic and text."""
    methods = question_methods(result)
    interval = result.options.interval
    default = " (the default)" if interval == DEFAULT_INTERVAL else ""
    return [
        *survey_facts(result.survey, result.n),
        ("Release", f"{result.release}"),
        ("Figures", f"{result.options.description}; interval of shares: {interval}{default}"),
        ("Collection", COLLECTION),
        ("Mechanisms", describe_mechanisms(methods)),
        (
            "Estimation",
            "Shares are estimated by inverting the randomization. The column estimate is unbiased "
            "and may lie outside 0 to 1; mle is the most likely share within 0 to 1. Intervals "
            "cover both sampling and randomization. "
            f"{describe_intervals(methods, result.options)}".strip(),
        ),
        ("Suppression", SUPPRESSION),
        ("Limits", LIMITS),
    ]


def crosstab_methods_sheet(result: CrosstabResult) -> list[tuple[str, str]]:
    """Return how a cross-tabulation was computed, as pairs of topic and text."""
    test = result.test
    return [
        *survey_facts(result.survey, result.table.n),
        ("Questions", " × ".join(question.text for question in result.questions)),
        ("Figures", f"{100 * result.table.level:.4g}% intervals, per cell"),
        ("Collection", COLLECTION),
        (
            "Estimation",
            "Joint inversion of both channels (P = A⁻¹ F B⁻ᵀ). The estimates are unbiased; a cell "
            "may lie outside 0 to 1. Wilson’s score intervals cover both sampling and "
            "randomization.",
        ),
        ("Suppression", SUPPRESSION),
        *([] if test is None else [("Test", independence_sentence(result, test))]),
        ("Limits", " ".join([*caveats(result), LIMITS])),
    ]


def survey_facts(survey: PublishedSurvey, n: int) -> list[tuple[str, str]]:
    """Return what every export states about its survey, of which it contains `n` reports."""
    definition = survey.definition
    return [
        ("Survey", f"{definition.title} ({survey.slug}, version {survey.version})"),
        ("Definition (SHA-256)", survey.sha256),
        ("Released reports", f"{n:,}"),
        ("State", survey.state),
        ("Total epsilon", format_epsilon(definition.epsilon)),
        ("Software", f"survey {__version__}"),
    ]


def _question_rows(question: PublishedQuestion) -> Iterator[CodebookRow]:
    if question.kind.is_numeric and question.grid:
        values = question.grid.values
        label = f"{len(values)} values from {values[0]:g} to {values[-1]:g} {question.grid.unit}"
        yield _row(question, "", label.strip(), is_no_answer=False)
    opt_outs = (question.opt_out, question.not_applicable)
    for option in question.options:
        yield _row(question, option.id, option.label, is_no_answer=option.id in opt_outs)


def _row(
    question: PublishedQuestion, option_id: str, option_label: str, *, is_no_answer: bool
) -> CodebookRow:
    condition = question.ask_if
    return CodebookRow(
        question_id=question.id,
        question_text=question.text,
        question_type=question.type,
        option_id=option_id,
        option_label=option_label,
        is_no_answer=is_no_answer,
        asked_if=f"{condition.question}: {', '.join(condition.options)}" if condition else "",
        mechanism=MECHANISMS[question.mechanism],
        stated=", ".join(f"{name} = {value}" for name, value in question.stated.items()),
        epsilon=question.channel.epsilon,
    )
