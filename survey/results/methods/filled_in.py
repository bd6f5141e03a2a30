"""Methods with a survey's own numbers in them: what ran for each question, in words too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from survey.estimator import answered_shares, debias, histogram, mean, median
from survey.estimator.trust.disclosure import FEWEST_EFFECTIVE, HIDDEN_WIDTH
from survey.mechanism import SubsetSelection
from survey.mechanism.accounting import format_epsilon
from survey.results.estimates.compute import shares_estimator
from survey.results.estimates.question import Part, QuestionResult
from survey.results.estimates.result import SurveyResult
from survey.results.estimates.table import Row
from survey.results.methods import (
    NAMES_IN_WORDS,
    Section,
    anchor_of_interval,
    anchor_of_mechanism,
    sections,
)
from survey.results.methods.references import REFERENCES
from survey.results.options import Wanted
from survey.version import __version__


@dataclass(frozen=True)
class Ran:
    """What made some rows of a question: the estimator's function, and the interval's section.

    `interval` is the title of that section, empty while the rows are hidden.
    """

    what: str
    anchor: str
    estimator: str
    interval: str = ""
    interval_anchor: str = ""


@dataclass(frozen=True)
class QuestionMethods:
    """How one question was asked and read; `p` and `q` are None where there is no one number."""

    id: str
    text: str
    mechanism: str
    anchor: str
    n_options: int
    p: float | None
    q: float | None
    epsilon: str
    n: int
    ran: tuple[Ran, ...]
    worked: str


def questions_methods(result: SurveyResult) -> list[QuestionMethods]:
    """One for each question, in the survey's order."""
    return [_of(question) for question in result.questions]


def _of(result: QuestionResult) -> QuestionMethods:
    question, row = result.question, result.rows[0]
    p = row.truth_probability
    return QuestionMethods(
        id=question.id,
        text=question.text,
        mechanism=row.mechanism,
        anchor=anchor_of_mechanism(NAMES_IN_WORDS[row.mechanism]),
        n_options=row.n_options,
        p=p,
        q=None if p is None else getattr(question.channel, "q", None),
        epsilon=format_epsilon(row.epsilon),
        n=result.asked,
        ran=tuple(_ran(result)),
        worked=_worked(result),
    )


def _ran(result: QuestionResult) -> Iterator[Ran]:
    of_shares = shares_estimator(result.question)
    about: Sequence[tuple[str, str, Part, Callable[..., object]]] = (
        ("Shares", "share", result.shares_part, of_shares),
        ("Of those who answered", "answered", result.answered_part, answered_shares),
        ("Histogram", "histogram", result.spread_part, histogram),
        ("Mean", "mean", result.mean_part, mean),
        ("Median", "median", result.median_part, median),
    )
    for what, anchor, part, estimator in about:
        if part.rows:
            method = method_of(part.rows)
            to = anchor_of_interval(method) if method else ""
            title = sections()[to].title if to else ""
            yield Ran(what, anchor, estimator.__name__, title, to)


def method_of(rows: Sequence[Row]) -> str:
    """The method of rows that are shown or hidden together; empty while they are hidden."""
    return next((row.method for row in rows if row.method), "")


def _worked(result: QuestionResult) -> str:
    """The first share of a question, step by step, where one p and one q make it."""
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


def for_a_paper(result: SurveyResult) -> list[str]:
    """The methods in sentences as they can stand in a paper, numbers and versions filled in."""
    survey, found = result.survey, questions_methods(result)
    return [
        "Every answer was randomized once on the respondent’s own device before it was sent "
        "(local differential privacy); the server received and stored only the random answers. "
        f"{mechanisms_in_words(found)} Everything that one respondent sent has a total epsilon "
        f"of {format_epsilon(survey.definition.epsilon)}.",
        f"Estimates are those of {result.n:,} released reports (release {result.release}). Shares "
        "are the shares of reports with the randomization inverted, (f − q)/(p − q) where a "
        "mechanism has one p and one q, unbiased and not clipped. "
        f"{intervals_in_words(found, result.wanted)} All hold both the sampling and the "
        "randomization. A question is not shown while its widest interval is "
        f"{100 * HIDDEN_WIDTH:.0f} points or more, or while fewer than {FEWEST_EFFECTIVE} open "
        "answers would tell as much.",
        f"Survey {survey.slug}, version {survey.version}; definition SHA-256 {survey.sha256}; "
        f"software survey {__version__}. Whether people answered truthfully cannot be seen in the "
        "figures.",
    ]


def mechanisms_in_words(found: Sequence[QuestionMethods]) -> str:
    """How the questions were asked: each mechanism with its p, epsilon and questions."""
    return " ".join(_mechanisms(found))


def intervals_in_words(found: Sequence[QuestionMethods], wanted: Wanted) -> str:
    """How the numbers that are shown were made; empty while none is."""
    return " ".join(_intervals(found, wanted))


def _mechanisms(found: Sequence[QuestionMethods]) -> Iterator[str]:
    """A sentence for each way of asking, with its p and epsilon and the questions it is of."""

    def way(one: QuestionMethods) -> tuple[str, str, str]:
        p = "" if one.p is None else f"p = {one.p:.4g}, "
        return one.mechanism, p, one.epsilon

    ways: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        ways.setdefault(way(one), []).append(f"“{one.text}”")
    for (mechanism, p, epsilon), names in ways.items():
        was = "was" if len(names) == 1 else "were"
        each = "" if len(names) == 1 else " each"
        yield (f"{_listed(names)} {was} asked by {mechanism} ({p}epsilon = {epsilon}{each}).")


def _intervals(found: Sequence[QuestionMethods], wanted: Wanted) -> Iterator[str]:
    """A sentence for each kind of number that is shown, with its interval and function."""
    whats: dict[tuple[str, str], list[str]] = {}
    for one in found:
        for ran in one.ran:
            if ran.interval:
                key = ran.what, ran.estimator
                whats.setdefault(key, []).append(ran.interval)
    for (what, estimator), intervals in whats.items():
        kinds = _listed(list(dict.fromkeys(intervals)))
        yield f"{what}: {wanted.percent} intervals ({kinds}; function {estimator})."


def _listed(names: Sequence[str]) -> str:
    """Names as people list them.

    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def explained(result: SurveyResult) -> list[Section]:
    """The sections of what ran, in the order in which it did: mechanisms, numbers, intervals."""
    found = questions_methods(result)
    shown = [ran for one in found for ran in one.ran if ran.interval]
    anchors = [
        *(one.anchor for one in found),
        *(ran.anchor for ran in shown),
        *(ran.interval_anchor for ran in shown),
    ]
    named = sections()
    return list({named[each].anchor: named[each] for each in anchors}.values())


def references(result: SurveyResult) -> list[str]:
    """The works behind what ran, in full, by their names."""
    cited = {source for section in explained(result) for source in section.sources}
    return [REFERENCES[source] for source in sorted(cited, key=str.casefold)]
