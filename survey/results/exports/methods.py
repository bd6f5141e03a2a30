"""The methods of one survey, with its own numbers: how each question was asked and estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from survey.estimator import answered_shares, debias, histogram, mean, median
from survey.estimator.trust.suppression import HIDDEN_MARGIN
from survey.mechanism import SubsetSelection
from survey.mechanism.composition import format_epsilon
from survey.methods import Section, interval_anchor, mechanism_anchor, references, sections
from survey.questionnaire.privacy_loss import report_heading, report_sentences
from survey.results.estimates.compute import shares_estimator
from survey.results.estimates.result import QuestionResult, ResultPart, SurveyResult
from survey.results.estimates.table import EstimateRow
from survey.results.request import IntervalOptions
from survey.store import PublishedSurvey
from survey.version import __version__


@dataclass(frozen=True)
class Computation:
    """How one kind of result was computed: by which function, with which interval.

    anchor    the section of the methods that explains the result
    function  name of the estimator's function
    interval  title of the interval's section; empty while the result is suppressed
    """

    name: str
    anchor: str
    function: str
    interval: str = ""
    interval_anchor: str = ""


@dataclass(frozen=True)
class QuestionMethods:
    """How one question was asked and estimated.

    p, q         None for mechanisms that have no single p and q
    calculation  the first share, step by step; empty if it has no such formula or is suppressed
    """

    id: str
    text: str
    mechanism: str
    anchor: str
    n_options: int
    p: float | None
    q: float | None
    epsilon: str
    n: int
    computations: tuple[Computation, ...]
    calculation: str


def question_methods(result: SurveyResult) -> list[QuestionMethods]:
    """Return the methods of each question, in the survey's order."""
    return [_question_methods(question) for question in result.questions]


def method_name(rows: Sequence[EstimateRow]) -> str:
    """Return the method of rows that are shown or suppressed together; empty if suppressed."""
    return next((row.method for row in rows if row.method), "")


def methods_statement(result: SurveyResult) -> list[str]:
    """Return paragraphs for a paper's methods section, with the survey's numbers and version."""
    survey, methods = result.survey, question_methods(result)
    return [
        "The respondents’ devices randomized every answer once, before sending it (local "
        "differential privacy). The server received and stored only the randomized reports. "
        f"{report_heading(survey.definition)}. "
        f"{report_sentences(survey.definition.ratio)} {describe_mechanisms(methods)}",
        f"Estimates are based on {result.n:,} released reports (release {result.release}). Shares "
        "were estimated by inverting the randomization: (f − q)/(p − q) for mechanisms with a "
        "single p and q. These estimates are unbiased and not clipped. "
        f"{describe_intervals(methods, result.options)} All intervals cover both sampling and "
        "randomization. A result was suppressed if the expected margin of error, which "
        "depends on the mechanism and the number of reports, exceeded "
        f"{100 * HIDDEN_MARGIN:.0f} points for the least favourable answers. The estimates did "
        "not influence this decision.",
        f"Survey {survey.slug}, version {survey.version}; definition SHA-256 {survey.sha256}; "
        f"software survey {__version__}. The results do not show whether respondents answered "
        "truthfully.",
    ]


def describe_mechanisms(methods: Sequence[QuestionMethods]) -> str:
    """Return one sentence for each mechanism, with its p, epsilon and questions."""
    questions: dict[tuple[str, str, str], list[str]] = {}
    for method in methods:
        p = "" if method.p is None else f"p = {method.p:.4g}, "
        questions.setdefault((method.mechanism, p, method.epsilon), []).append(f"“{method.text}”")
    return " ".join(
        f"{_join(texts)} used {mechanism} ({p}epsilon = {epsilon} for "
        f"{'each' if len(texts) > 1 else 'this'} question alone)."
        for (mechanism, p, epsilon), texts in questions.items()
    )


def describe_intervals(methods: Sequence[QuestionMethods], options: IntervalOptions) -> str:
    """Return one sentence for each kind of result shown; empty if everything is suppressed."""
    intervals: dict[tuple[str, str], dict[str, None]] = {}
    for shown in _shown(methods):
        intervals.setdefault((shown.name, shown.function), {})[shown.interval] = None
    return " ".join(
        f"{name}: {options.percent} intervals ({_join(list(titles))}; function {function})."
        for (name, function), titles in intervals.items()
    )


def _shown(methods: Sequence[QuestionMethods]) -> list[Computation]:
    return [item for method in methods for item in method.computations if item.interval]


def sections_used(result: SurveyResult) -> list[Section]:
    """Return the sections that explain a result: mechanisms, then estimates, then intervals."""
    methods = question_methods(result)
    anchors = [
        *(method.anchor for method in methods),
        *(computation.anchor for computation in _shown(methods)),
        *(computation.interval_anchor for computation in _shown(methods)),
    ]
    return [sections()[anchor] for anchor in dict.fromkeys(anchors)]


def works_cited(result: SurveyResult) -> list[str]:
    """Return the full references behind a result, sorted by name."""
    keys = {key for section in sections_used(result) for key in section.references}
    return [references()[key] for key in sorted(keys, key=str.casefold)]


def survey_facts(survey: PublishedSurvey, n: int) -> list[tuple[str, str]]:
    """Return what every export states about its survey, of which it contains `n` reports."""
    definition = survey.definition
    return [
        ("Survey", f"{definition.title} ({survey.slug}, version {survey.version})"),
        ("Definition (SHA-256)", survey.sha256),
        ("Released reports", f"{n:,}"),
        ("State", survey.state),
        ("Total epsilon", format_epsilon(definition.epsilon)),
        ("Privacy loss", report_sentences(definition.ratio)),
        ("Software", f"survey {__version__}"),
    ]


def _question_methods(result: QuestionResult) -> QuestionMethods:
    question, row = result.question, result.rows[0]
    p = row.truth_probability
    return QuestionMethods(
        id=question.id,
        text=question.text,
        mechanism=row.mechanism,
        anchor=mechanism_anchor(question.mechanism),
        n_options=row.n_options,
        p=p,
        q=None if p is None else getattr(question.channel, "q", None),
        epsilon=format_epsilon(row.epsilon),
        n=result.n_asked,
        computations=tuple(_computations(result)),
        calculation=_calculation(result),
    )


def _computations(result: QuestionResult) -> Iterator[Computation]:
    kinds: Sequence[tuple[str, str, ResultPart, Callable[..., object]]] = (
        ("Shares", "share", result.parts["shares"], shares_estimator(result.question)),
        ("Shares of those who answered", "answered", result.parts["answered"], answered_shares),
        ("Histogram", "histogram", result.parts["spread"], histogram),
        ("Mean", "mean", result.parts["mean"], mean),
        ("Median", "median", result.parts["median"], median),
    )
    for name, anchor, part, estimator in kinds:
        if part.rows:
            method = method_name(part.rows)
            interval = interval_anchor(method) if method else ""
            title = sections()[interval].title if interval else ""
            yield Computation(name, anchor, estimator.__name__, title, interval)


def _calculation(result: QuestionResult) -> str:
    """Return (f − q)/(p − q) of the first share in numbers, where one p and one q apply."""
    channel = result.question.channel
    row = next((row for row in result.shares if row.estimate is not None), None)
    if not isinstance(channel, SubsetSelection) or result.question.by_patterns or row is None:
        return ""
    if row.report_share is None:
        return ""
    share = float(debias(row.report_share, channel))
    return (
        f"“{row.option_label}”: {row.report_count:,} of {row.n_reports:,} reports, "
        f"({row.report_share:.4f} − {channel.q:.4f}) / ({channel.p:.4f} − {channel.q:.4f}) = "
        f"{share:.4f}"
    ).replace("-", "−")


def _join(names: Sequence[str]) -> str:
    """Join names into a list in words.

    >>> _join(["a"]), _join(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
