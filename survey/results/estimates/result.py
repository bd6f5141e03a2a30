"""Results of a survey: its questions with rows, decisions, remarks, and what to say about them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from threading import Lock
from typing import Any, TypeVar

from survey.estimator import Disclosure
from survey.mechanism.bit_vector import TickChannel
from survey.progress import steps
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import (
    PARTS,
    SUPPRESSED,
    count_missing_responses,
    decide_disclosures,
)
from survey.results.estimates.compute import (
    Detail,
    estimate_question,
    no_estimates,
    share_details,
)
from survey.results.estimates.sentences import fit_warning, remarks
from survey.results.estimates.table import (
    EstimateRow,
    RowContext,
    describe_estimate,
    question_rows,
    row_label,
)
from survey.results.groups import EVERYONE, Group, Tallies
from survey.results.number_format import NumberFormat, number_format
from survey.results.question_statistics import question_index
from survey.results.request import DEFAULT_OPTIONS, IntervalOptions, Request
from survey.store import PublishedSurvey, Store, Tally

logger = logging.getLogger(__name__)

FAILED = "This question could not be estimated because of an error in the software ({})."
"""The reason on a page if an estimator fails; the server's log has the details."""

CACHE_SIZE = 32
"""Results that are kept in memory, one per survey, release and options."""


@dataclass(frozen=True)
class ResultPart:
    """Rows that are shown or suppressed together.

    missing       about how many more responses are needed while suppressed
    is_estimable  whether the question's design allows these estimates
    name          what a caveat calls them; empty if the question has one part only
    """

    rows: tuple[EstimateRow, ...]
    disclosure: Disclosure = SUPPRESSED
    missing: int = 0
    is_estimable: bool = True
    name: str = ""

    @property
    def is_listed(self) -> bool:
        """Whether a table lists the rows: with numbers, or as not estimable beside other parts."""
        beside_another = not self.is_estimable and bool(self.name)
        return bool(self.rows) and (self.disclosure != SUPPRESSED or beside_another)

    def caveat(self, *, closed: bool) -> str:
        """Return the warning beside the rows, or the text that replaces them; empty if neither.

        `closed` surveys accept no responses, so the number of missing responses is left out.
        """
        if not self.rows or self.disclosure == "show":
            return ""
        if self.disclosure == "caution":
            of = f" for {self.name}" if self.name else ""
            return f"Low precision{of}: {self._precision}."
        if not self.is_estimable:
            return "" if self.name else "Nothing can be estimated from this question's design."
        of = f" for {self.name}" if self.name else ""
        if closed:
            return f"Not enough responses{of}."
        more = f"about {self.missing:,} more" if self.missing else "more"
        return f"Not enough responses yet{of}: {more} needed."

    @property
    def _precision(self) -> str:
        """The widest margin of error of shares; other statistics have other units."""
        widest = _widest_margin(self.rows)
        return f"margin ±{100 * widest:.1f} points" if widest else "the intervals are wide"


def _widest_margin(rows: Iterable[EstimateRow]) -> float:
    """Return the widest half-width of the intervals of shares; 0 without one."""
    widths = [
        (row.conf_high - row.conf_low) / 2
        for row in rows
        if row.statistic == "share" and row.conf_low is not None and row.conf_high is not None
    ]
    return max(widths, default=0.0)


@dataclass(frozen=True)
class QuestionResult:
    """The result of one question; each part is shown or suppressed independently.

    Only the parts in `WITH_SHARES` wait for the shares among all. `parts` are named and ordered as
    in `PARTS`. `n_asked` of the `n` released reports include the question.
    `warning` says that the estimates cannot be relied on; `failure`, why an estimator failed.
    """

    question: PublishedQuestion
    parts: Mapping[str, ResultPart]
    n_asked: int
    n: int
    compute_remarks: Callable[[], tuple[str, ...]] = field(compare=False, repr=False)
    details: tuple[Detail, ...]
    options: IntervalOptions
    warning: str = ""
    failure: str = ""

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the estimates, which only the question's page and the report show.

        For a number, they take most of the time. They are empty if they cannot be computed.
        """
        try:
            return self.compute_remarks()
        except Exception:
            logger.exception("question %s has no remarks", self.question.id)
            return ()

    @property
    def rows(self) -> tuple[EstimateRow, ...]:
        """All rows in the order of the CSV."""
        return tuple(row for part in self.parts.values() for row in part.rows)

    @property
    def shares(self) -> tuple[EstimateRow, ...]:
        """The rows of options, among all."""
        return self.parts["shares"].rows

    @property
    def answered(self) -> tuple[EstimateRow, ...]:
        """The rows of answers, among those who answered."""
        return self.parts["answered"].rows

    @property
    def spread(self) -> tuple[EstimateRow, ...]:
        """The rows of histogram cells."""
        return self.parts["spread"].rows

    @property
    def mean(self) -> EstimateRow | None:
        """The row of the mean, if the answers are numbers or scores."""
        if self.question.kind.is_ranking:
            return None
        return next(iter(self.parts["mean"].rows), None)

    @property
    def median(self) -> EstimateRow | None:
        """The row of the median, if the answers are numbers or scores."""
        return next(iter(self.parts["median"].rows), None)

    @property
    def middles(self) -> tuple[EstimateRow, ...]:
        """The rows of the mean and median, or of mean ranks, that the page shows."""
        parts = (self.parts["mean"], self.parts["median"])
        return tuple(row for part in parts if part.is_listed for row in part.rows)

    @property
    def among_answered(self) -> dict[str, EstimateRow]:
        """The rows among those who answered that are shown, by option id."""
        rows = self.answered if self.parts["answered"].disclosure != SUPPRESSED else ()
        return {row.option_id: row for row in rows}

    def share_caveats(self, *, closed: bool) -> list[str]:
        """Return the warnings about shares, or the texts that replace them."""
        if self.failure:
            return [self.failure]
        everyone, answered = self.parts["shares"], self.parts["answered"]
        texts = [everyone.caveat(closed=closed)]
        if everyone.disclosure not in (SUPPRESSED, answered.disclosure):
            texts.append(answered.caveat(closed=closed))
        return [text for text in texts if text]

    def middle_caveats(self, *, closed: bool) -> list[str]:
        """Return the warnings about mean and median, or the texts that replace them."""
        if self.failure:
            return [] if self.shares else [self.failure]
        parts = (self.parts["mean"], self.parts["median"])
        if self.question.kind.is_ranking:
            return [text] if (text := parts[0].caveat(closed=closed)) else []
        if {part.disclosure for part in parts} == {"caution"}:
            return ["Low precision for mean and median: the intervals are wide."]
        return [text for part in parts if (text := part.caveat(closed=closed))]

    def spread_caveats(self, *, closed: bool) -> list[str]:
        """Return the warning about the histogram, or the text that replaces it."""
        text = "" if self.failure else self.parts["spread"].caveat(closed=closed)
        return [text] if text else []

    def caveats(self, *, closed: bool) -> list[str]:
        """Return all warnings about the question's numbers."""
        return [
            *self.share_caveats(closed=closed),
            *self.middle_caveats(closed=closed),
            *self.spread_caveats(closed=closed),
        ]

    @property
    def disclosure(self) -> Disclosure:
        """The most permissive decision of all parts: "hide" if nothing is shown."""
        order: tuple[Disclosure, ...] = ("show", "caution", "hide")
        return min((part.disclosure for part in self.parts.values()), key=order.index)

    @property
    def margin(self) -> str:
        """The widest margin of error of what is shown, in words; empty if nothing is."""
        if self.parts["shares"].is_listed and (widest := _widest_margin(self.shares)):
            return f"±{100 * widest:.1f} points"
        mean = self.mean
        if mean is None or mean.conf_low is None or mean.conf_high is None:
            return ""
        formatter = self.number_format(mean)
        unit = "days" if formatter.is_date else formatter.unit
        half_width = (mean.conf_high - mean.conf_low) / 2
        return f"±{half_width:,.{formatter.decimals}f} {unit} of the mean".replace("  ", " ")

    def number_format(self, row: EstimateRow) -> NumberFormat:
        """Return the number format of a mean's or median's row."""
        return number_format(self.question, row.statistic)

    def describe(self, row: EstimateRow, *, closed: bool = False) -> str:
        """Describe one of this question's rows in words."""
        return describe_estimate(row, self.number_format(row), closed=closed)

    @property
    def spread_title(self) -> str:
        """The heading of the histogram."""
        unit = self.question.grid.unit if self.question.grid else ""
        answered = self.spread and self.spread[0].base == "answered"
        base = "Of those who answered" if answered else "All"
        return f"{base}, in {unit}" if unit else base

    @property
    def notes(self) -> list[str]:
        """Notes on who was asked and on how to read the shares."""
        notes = []
        if self.n_asked < self.n:
            notes.append(f"A random {self.n_asked:,} of {self.n:,} respondents were asked.")
        if self.question.kind.is_ranking:
            last = self.question.kind.count_ranked(self.question)
            notes.append(f"Shares of first places; mean ranks from 1 (first) to {last} (last).")
        if self.question.kind.is_multiple:
            notes.append("Several answers possible: shares do not add up to 100%.")
        channel = self.question.channel
        if isinstance(channel, TickChannel) and channel.is_sampled:
            notes.append(
                f"Each report covers {channel.sampled} of the {channel.m} answers, at random."
            )
        if self.question.kind.is_ordered and self.question.grid and self.mean:
            grid, options = self.question.grid, self.question.options
            ends = (_end(grid.values[i], options[i % grid.points].label) for i in (0, -1))
            notes.append(f"Scores: {', '.join(ends)}.")
        return notes


def _end(score: float, label: str) -> str:
    """Name an end of a scale, without repeating the score that its label states.

    >>> _end(1, "1 (Not at all)"), _end(5, "Completely")
    ('1 = Not at all', '5 = Completely')
    """
    prefix = f"{score:g} ("
    if label.startswith(prefix) and label.endswith(")"):
        label = label.removeprefix(prefix)[:-1]
    return f"{score:g} = {label}"


@dataclass(frozen=True)
class SurveyResult:
    """The result of one version of a survey after one of its releases.

    `group` is the group of respondents. A question is estimated when it is first accessed.
    """

    survey: PublishedSurvey
    tally: Tally
    now: datetime
    options: IntervalOptions = DEFAULT_OPTIONS
    group: Group = EVERYONE
    _results: dict[int, QuestionResult] = field(default_factory=dict, compare=False, repr=False)

    @property
    def release(self) -> int:
        """The number of the release."""
        return self.tally.release

    @property
    def n(self) -> int:
        """The number of released reports."""
        return self.tally.n

    @property
    def questions(self) -> tuple[QuestionResult, ...]:
        """The results of all questions in order."""
        return tuple(self.at(place) for place in steps(range(len(self.tally.counts))))

    def question(self, question_id: str) -> QuestionResult:
        """Return a question's result; NotFoundError if the survey has no such question."""
        return self.at(question_index(self.survey, question_id))

    @property
    def rows(self) -> list[EstimateRow]:
        """All rows of all questions in order."""
        return [row for question in self.questions for row in question.rows]

    def at(self, place: int) -> QuestionResult:
        """Return the result of the question at a place."""
        if place not in self._results:
            self._results[place] = question_result(
                self.survey,
                self.survey.definition.questions[place],
                self.n,
                self.tally.n_asked[place],
                self.tally.counts[place],
                self.now,
                self.options,
                self.group,
            )
        return self._results[place]


def question_result(
    survey: PublishedSurvey,
    question: PublishedQuestion,
    n: int,
    n_asked: int,
    counts: Sequence[int],
    now: datetime,
    options: IntervalOptions = DEFAULT_OPTIONS,
    group: Group = EVERYONE,
) -> QuestionResult:
    """Estimate a question from its counts; n_asked of the n reports contain it.

    If an estimator fails, the result has all rows without numbers, and says so: one question must
    never make the others unreadable.
    """
    suppressed = dict.fromkeys(PARTS, SUPPRESSED)
    context = RowContext(
        survey, question, n_asked, no_estimates(question), suppressed, options, now, group
    )
    try:
        return _estimate(context, n, counts)
    except Exception as error:
        logger.exception("%s: question %s cannot be estimated", survey.slug, question.id)
        failure = FAILED.format(type(error).__name__)
        return _build_result(context._replace(has_failed=True), n, {}, False, failure=failure)


def _estimate(context: RowContext, n: int, counts: Sequence[int]) -> QuestionResult:
    """Estimate a question; whether estimates are shown was decided before, by n and the design."""
    question, n_asked = context.question, context.n_asked
    estimates = estimate_question(question, n_asked, counts, context.options)
    disclosures = decide_disclosures(question, n_asked)
    has_details = disclosures["shares"] != SUPPRESSED and not question.kind.is_numeric
    is_shown = {disclosures["shares"], disclosures["mean"]} != {SUPPRESSED}
    definition = context.survey.definition
    draw_factor = len(definition.groups) / definition.drawn
    return _build_result(
        context._replace(estimates=estimates, disclosures=disclosures),
        n,
        missing=count_missing_responses(question, n_asked, draw_factor),
        has_shares=not n_asked or estimates.shares is not None,
        compute_remarks=partial(remarks, question, counts, estimates, disclosures)
        if n_asked
        else tuple,
        # None if the only options are opt-outs.
        details=share_details(question, estimates.shares)
        if estimates.shares is not None and has_details
        else (),
        warning=fit_warning(question, counts) if n_asked and is_shown else "",
    )


def _build_result(
    context: RowContext,
    n: int,
    missing: Mapping[str, int],
    has_shares: bool,
    *,
    compute_remarks: Callable[[], tuple[str, ...]] = tuple,
    details: tuple[Detail, ...] = (),
    warning: str = "",
    failure: str = "",
) -> QuestionResult:
    rows, question = question_rows(context), context.question
    has_mean = bool(rows["mean"])
    has_distribution = context.estimates.has_distribution and not failure
    has_options = question.kind.is_ordered or question.kind.is_ranking
    shares_name = "the shares" if has_options else "the share who did not answer"
    mean_name = "the mean ranks" if question.kind.is_ranking else "the mean"
    names = {
        "shares": shares_name if has_mean else "",
        "answered": "shares among those who answered",
        "spread": "the histogram",
        "mean": mean_name if has_mean else "",
        "median": "the median",
    }
    estimable = {"shares": has_shares, "spread": has_distribution, "median": has_distribution}
    return QuestionResult(
        question=question,
        parts={
            part: ResultPart(
                rows[part],
                context.disclosures[part],
                missing.get(part, 0),
                estimable.get(part, True),
                names[part],
            )
            for part in PARTS
        },
        n_asked=context.n_asked,
        n=n,
        compute_remarks=compute_remarks,
        details=details,
        options=context.options,
        warning=warning,
        failure=failure,
    )


Asked = TypeVar("Asked", bound=Request)
Cached = TypeVar("Cached")
Split = Callable[[Tallies], dict[Group, Tally]]


class ResultCache:
    """Computes results once per release and options, and keeps the most recent of them.

    Each process has its own cache. A cached result is valid while the release number is.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._entries: dict[Hashable, tuple[int, Any]] = {}
        self._computations: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def result(
        self, survey: PublishedSurvey, options: IntervalOptions = DEFAULT_OPTIONS
    ) -> SurveyResult:
        """Return the result of a survey's newest release."""
        # Read the number before the counts, so that the next call detects a release in between.
        release = self.store.newest_release(survey.key).number

        def compute() -> SurveyResult:
            return SurveyResult(survey, self.store.tally(survey.key), datetime.now(UTC), options)

        return self._cached(release, (survey, options), compute)

    def results_by_group(
        self, survey: PublishedSurvey, split: Split, options: IntervalOptions
    ) -> dict[Group, SurveyResult]:
        """Return the results of each group into which `split` divides the released reports."""
        release = self.store.newest_release(survey.key).number

        def compute() -> dict[Group, SurveyResult]:
            now = datetime.now(UTC)
            tallies = split(self.store.tallies(survey.key))
            return {
                group: SurveyResult(survey, tally, now, options, group)
                for group, tally in tallies.items()
            }

        return self._cached(release, (survey, split, options), compute)

    def analysis(
        self,
        compute: Callable[[Store, PublishedSurvey, Asked, IntervalOptions], Cached],
        survey: PublishedSurvey,
        request: Asked,
        options: IntervalOptions,
    ) -> Cached:
        """Return what `compute` returns for these arguments and a survey's newest release.

        The result may depend only on the arguments and the released reports of the survey.
        """
        release = self.store.newest_release(survey.key).number
        key = compute, survey, request, options
        return self._cached(release, key, lambda: compute(self.store, survey, request, options))

    def _cached(self, release: int, key: Hashable, compute: Callable[[], Cached]) -> Cached:
        """Return the entry of a release; threads that need the same entry compute it only once."""
        with self._lock:
            computation = self._computations.setdefault(key, Lock())
        try:
            with computation:
                entry = self._entries.get(key)
                if entry is None or entry[0] != release:
                    entry = release, compute()
                self._keep(key, entry)
        finally:
            with self._lock:
                self._computations.pop(key, None)
        value: Cached = entry[1]
        return value

    def _keep(self, key: Hashable, entry: tuple[int, Any]) -> None:
        """Make an entry the most recent one, and drop the oldest entries beyond the maximum."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = entry
            while len(self._entries) > CACHE_SIZE:
                del self._entries[next(iter(self._entries))]


def terminal_lines(result: SurveyResult) -> list[str]:
    """Return a result as lines: a heading, then the rows of each question."""
    survey = result.survey
    lines = [
        f"{survey.definition.title} ({survey.slug}, version {survey.version}): "
        f"{result.n:,} released reports, {result.options.description}"
    ]
    for question in result.questions:
        lines += ["", question.question.text, *_question_lines(question, survey.state != "open")]
    return lines


def _question_lines(question: QuestionResult, closed: bool) -> list[str]:
    """Return the question's notes, the rows that are shown, and its cautions and remarks."""
    lines = list(question.notes) if question.disclosure != "hide" else []
    if question.parts["shares"].is_listed:
        lines += _row_lines(question, question.shares, closed)
    if question.among_answered:
        lines += ["Of those who answered:", *_row_lines(question, question.answered, closed)]
    lines += question.share_caveats(closed=closed)
    lines += _row_lines(question, question.middles, closed)
    lines += question.middle_caveats(closed=closed)
    if question.parts["spread"].is_listed:
        lines += [f"{question.spread_title}:", *_row_lines(question, question.spread, closed)]
    lines += question.spread_caveats(closed=closed)
    if question.warning:
        lines.append(question.warning)
    return [f"  {line}" for line in [*lines, *question.remarks]]


def _row_lines(question: QuestionResult, rows: Iterable[EstimateRow], closed: bool) -> list[str]:
    """Return rows in words, aligned over the whole question."""
    width = max(len(row_label(row)) for row in question.rows)
    return [f"{row_label(row):<{width}}  {question.describe(row, closed=closed)}" for row in rows]
