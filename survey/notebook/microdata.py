"""Released reports in memory, and the estimates of the dashboard from them.

The reports are stored as in a database, so that the functions behind the dashboard compute every
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from survey.errors import (
    ChannelError,
    CountsError,
    DesignError,
    NoBaseError,
    require_extra,
)
from survey.estimator import AnsweredShares, Crosstab, Mean, Proportions, Result
from survey.estimator.core.notebook_forms import NOTEBOOK, HtmlTable
from survey.mechanism import AnyChannel
from survey.mechanism.channel import Codes, Integers
from survey.notebook.tables import GroupResults, ResultTable
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED_PREFIX
from survey.results.crosstab.compute import CrosstabRequest, Method, compute_crosstab
from survey.results.estimates.compute import question_mean, question_shares, shares_of_answered
from survey.results.estimates.result import SurveyResult
from survey.results.groups import split_by_period, tallies_by_link
from survey.results.joint_counts import find_variable
from survey.results.question_statistics import (
    find_question,
    question_index,
    substantive_options,
    truth_labels,
    truth_values,
)
from survey.results.request import DEFAULT_LEVEL, DEFAULT_OPTIONS, IntervalOptions
from survey.store import BlockColumn, PublishedSurvey, Tally

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

UNASKED = -1
"""The code, or each bit, of a report whose respondent was not asked the question."""

By = Literal["stratum", "bucket"]
Base = Literal["all", "answered"]
R = TypeVar("R", bound=Result)
Cell = tuple[str, str]


class Question(NamedTuple):
    """A question of an export; `labels` are its true answers, in the order of the channel."""

    id: str
    text: str
    type: str
    labels: tuple[str, ...]
    channel: AnyChannel


@dataclass(frozen=True, repr=False)
class Microdata:
    """The released reports of one survey version: randomized answers, never true ones.

    survey   the published definition
    strata   the group of each report, shape (n,); "" is the open link
    buckets  the release period of each report, shape (n,); "" if the survey records none
    stored   the stored codes of each question, shape (n, bytes), in the order of the questions
    release  number of the newest release, 0 if the file does not state it
    """

    survey: PublishedSurvey
    strata: NDArray[np.object_]
    buckets: NDArray[np.object_]
    stored: Sequence[Codes]
    release: int = 0
    _counts: dict[Cell, Tally] = field(default_factory=dict, compare=False)

    @property
    def n(self) -> int:
        """The number of reports."""
        return len(self.strata)

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """The questions by id."""
        return {
            question.id: Question(
                question.id, question.text, question.type, labels_of(question), question.channel
            )
            for question in self.survey.definition.questions
        }

    @property
    def channels(self) -> Mapping[str, AnyChannel]:
        """The channel of each question, by id."""
        return {name: question.channel for name, question in self.questions.items()}

    @cached_property
    def reports(self) -> Mapping[str, Integers]:
        """The reports by question: codes of shape (n,), or bits of shape (n, bits).

        A code is the position of a report; for most choices that of the answer it names. Reports
        of people who were not asked are `UNASKED`. Estimate from them; never read one as the answer
        of a person.
        """
        return {
            question.id: report_numbers(question, stored)
            for question, stored in zip(self.survey.definition.questions, self.stored, strict=True)
        }

    @overload
    def proportions(
        self, question: str, *, by: None = None, base: Base = "all", **options: Any
    ) -> Proportions | AnsweredShares: ...
    @overload
    def proportions(
        self, question: str, *, by: By, base: Base = "all", **options: Any
    ) -> GroupResults[Proportions | AnsweredShares]: ...
    def proportions(
        self, question: str, *, by: By | None = None, base: Base = "all", **options: Any
    ) -> Proportions | AnsweredShares | GroupResults[Proportions | AnsweredShares]:
        """Estimate the share of each answer, as the dashboard does, with labels.

        `by` is "stratum" (collection links) or "bucket" (release periods). `base` is "all" or
        "answered", without people who preferred not to say. `options` are those of
        `IntervalOptions`: level, interval, simultaneous, target.

        Raises NotFoundError for an unknown question, ChannelError if its design does not identify
        the shares, NoBaseError if hardly anybody answered, DesignError for an unknown option.
        """
        published, place = self._find(question)
        interval_options = _interval_options(options)
        if base not in ("all", "answered"):
            raise DesignError(f"base = {base!r} must be 'all' or 'answered'")
        estimate = _answered if base == "answered" else _shares

        def of_tally(tally: Tally) -> Proportions | AnsweredShares:
            n_asked = _check_asked(published, tally.n_asked[place])
            counts = np.asarray(tally.counts[place], dtype=np.int64)
            share_counts = published.kind.share_counts(published, counts)
            return estimate(published, n_asked, share_counts, interval_options)

        return self._by(of_tally, by)

    @overload
    def mean(self, question: str, *, by: None = None, level: float = ...) -> Mean: ...
    @overload
    def mean(self, question: str, *, by: By, level: float = ...) -> GroupResults[Mean]: ...
    def mean(
        self, question: str, *, by: By | None = None, level: float = DEFAULT_LEVEL
    ) -> Mean | GroupResults[Mean]:
        """Estimate the mean of a number, date or scale among the people who answer.

        Dates are days since 1970-01-01, scales are scores. Raises ChannelError for a question
        without a mean, NoBaseError if hardly anybody answered.
        """
        published, place = self._find(question)
        if not truth_values(published):
            raise ChannelError(f"{question} has no mean: its answers are not numbers or scores")
        interval_options = IntervalOptions(level=level)

        def of_tally(tally: Tally) -> Mean:
            _check_asked(published, tally.n_asked[place])
            counts = np.asarray(tally.counts[place], dtype=np.int64)
            mean = question_mean(published, counts, interval_options)
            if mean is None:
                raise NoBaseError(f"{question}: hardly anybody seems to have answered")
            return mean

        return self._by(of_tally, by)

    def crosstab(
        self, first: str, second: str, *, level: float = DEFAULT_LEVEL, method: Method = "linear"
    ) -> Crosstab:
        """Estimate the joint shares of two questions, with the labels of both.

        An option of a multiple choice that is reported option by option is `question.option`.
        Raises NotFoundError for an unknown question, CountsError for a question with itself,
        ChannelError for questions that cannot be cross-tabulated.
        """
        request = CrosstabRequest(first, second, method)
        table = compute_crosstab(self, self.survey, request, IntervalOptions(level=level)).table
        axes = [labels_of(find_variable(self.survey, name).question) for name in (first, second)]
        return table.with_labels(*axes, names=(first, second))

    def results(self, **options: Any) -> ResultTable:
        """Return the rows of the results page, with its rule for suppressed estimates."""
        result = SurveyResult(
            self.survey, self.tally(0), datetime.now(UTC), _interval_options(options)
        )
        return ResultTable(self.survey.slug, self.survey.version, self.n, tuple(result.rows))

    def to_pandas(self) -> pd.DataFrame:
        """Return the reports as a DataFrame: stratum, bucket, and a column per question.

        Codes that name an answer become categories with its label, other codes integers, and each
        bit a column `question.option` of 0 and 1. Not asked is missing. The column of a question
        with the id `stratum` or `bucket` gets a number, such as `stratum_2`.
        """
        with require_extra(NOTEBOOK):
            import pandas as pd
        columns: dict[str, Any] = {"stratum": self.strata, "bucket": self.buckets}
        names = {*columns, *self.questions}
        for question in self.survey.definition.questions:
            name = _numbered(question.id, names) if question.id in columns else question.id
            columns |= _columns(pd, question, name, self.reports[question.id])
        return pd.DataFrame(columns)

    def to_arrow(self) -> pa.Table:
        """Return the reports as a pyarrow Table with the columns of `to_pandas`."""
        with require_extra(NOTEBOOK):
            import pyarrow as pa
        return pa.Table.from_pandas(self.to_pandas(), preserve_index=False)

    def tally(self, survey: int) -> Tally:  # noqa: ARG002  the interface of a store
        """Return the counts of all reports."""
        return self._tally(np.ones(self.n, dtype=bool))

    def tallies(self, survey: int) -> dict[Cell, Tally]:  # noqa: ARG002
        """Return the counts of each stratum and bucket."""
        if not self._counts:
            self._counts.update({cell: self._tally(rows) for cell, rows in self._cells()})
        return self._counts

    def block_columns(self, survey: int, questions: Sequence[int]) -> Iterator[list[BlockColumn]]:  # noqa: ARG002
        """Yield the stored codes of several questions, by stratum and bucket."""
        for number, (cell, rows) in enumerate(self._cells()):
            n = int(rows.sum())
            yield [
                BlockColumn(*cell, place, number, n, self.stored[place][rows].tobytes())
                for place in questions
            ]

    def __repr__(self) -> str:
        ids = ", ".join(self.questions)
        slug, version = self.survey.slug, self.survey.version
        return f"Microdata({slug!r}, version={version}, n={self.n}, questions: {ids})"

    def _repr_html_(self) -> str:
        """Return the list of questions as HTML, for notebooks."""
        caption = f"{self.survey.slug}, version {self.survey.version}: {self.n:,} released reports"
        rows = [[question.id, question.text, question.type] for question in self.questions.values()]
        return HtmlTable(caption, ("id", "question", "type"), rows, 1).text()

    def _find(self, question: str) -> tuple[PublishedQuestion, int]:
        return find_question(self.survey, question), question_index(self.survey, question)

    def _by(self, estimate: Callable[[Tally], R], by: By | None) -> R | GroupResults[R]:
        if by is None:
            return estimate(self.tally(0))
        if by == "stratum":
            groups = tallies_by_link(self, self.survey)
        elif by == "bucket":
            periods = split_by_period(self.tallies(0))
            groups = {group.name: tally for group, tally in periods.items()}
        else:
            raise DesignError(f"by = {by!r} must be 'stratum' or 'bucket'")
        if not groups:
            raise CountsError(f"{self.survey.slug} does not record the {by} of its reports")
        return GroupResults(by, {name: estimate(tally) for name, tally in groups.items()})

    def _cells(self) -> list[tuple[Cell, NDArray[np.bool_]]]:
        cells = sorted(set(zip(self.strata.tolist(), self.buckets.tolist(), strict=True)))
        return [
            ((stratum, bucket), (self.strata == stratum) & (self.buckets == bucket))
            for stratum, bucket in cells
        ]

    def _tally(self, rows: NDArray[np.bool_]) -> Tally:
        n_asked, counts = [], []
        for question, stored in zip(self.survey.definition.questions, self.stored, strict=True):
            asked, codes = _split(question, stored[rows])
            n_asked.append(int(asked.sum()))
            counts.append(question.channel.count(codes[asked]).tolist())
        return Tally(self.release, int(rows.sum()), n_asked, counts)


def labels_of(question: PublishedQuestion) -> tuple[str, ...]:
    """Return the labels of a question's true answers, or their ids if two labels are equal."""
    answers = truth_labels(question)
    labels = tuple(label for _, label in answers)
    return labels if len(set(labels)) == len(labels) else tuple(id_ for id_, _ in answers)


def _option_labels(question: PublishedQuestion) -> list[str]:
    labels = [option.label for option in question.options]
    return labels if len(set(labels)) == len(labels) else [o.id for o in question.options]


def _shares(
    question: PublishedQuestion, n_asked: int, counts: Integers, options: IntervalOptions
) -> Proportions:
    shares = question_shares(question, n_asked, counts, options) if question.options else None
    if shares is None:
        raise ChannelError(
            f"the shares of {question.id} cannot be estimated from its design; use mean()"
        )
    return shares.with_labels(_option_labels(question))


def _answered(
    question: PublishedQuestion, n_asked: int, counts: Integers, options: IntervalOptions
) -> AnsweredShares:
    places = substantive_options(question)
    if not places or question.kind.is_numeric:
        raise ChannelError(
            f"{question.id} has no shares among those who answered: use base='all', or mean()"
        )
    shares = shares_of_answered(question, n_asked, counts, options)
    if shares is None:
        raise NoBaseError(f"{question.id}: hardly anybody seems to have answered")
    labels = _option_labels(question)
    return shares.with_labels([labels[place] for place in places])


def _check_asked(question: PublishedQuestion, n_asked: int) -> int:
    if not n_asked:
        raise CountsError(f"{question.id}: no report answers this question")
    return n_asked


def _interval_options(options: Mapping[str, Any]) -> IntervalOptions:
    try:
        return IntervalOptions(**options)
    except TypeError:
        names = ", ".join(vars(DEFAULT_OPTIONS))
        raise DesignError(f"options {', '.join(options)} must be among {names}") from None


def _split(question: PublishedQuestion, stored: Codes) -> tuple[NDArray[np.bool_], Codes]:
    """Return which reports include the question, and all codes without the prefix."""
    if not question.nullable:
        return np.ones(len(stored), dtype=bool), stored
    return stored[:, 0] == ASKED_PREFIX[0], stored[:, 1:]


def report_numbers(question: PublishedQuestion, stored: Codes) -> Integers:
    """Return a question's stored codes as numbers (n,) or bits (n, bits), -1 for not asked."""
    asked, codes = _split(question, stored)
    if question.channel.report_bits:
        numbers = np.unpackbits(codes, axis=1)[:, : question.channel.report_bits].astype(np.int64)
    else:
        # Codes are big-endian: first the high byte, if there are two.
        weights = 256 ** np.arange(codes.shape[1] - 1, -1, -1, dtype=np.int64)
        numbers = codes.astype(np.int64) @ weights
    numbers[~asked] = UNASKED
    return np.asarray(numbers)


def _numbered(name: str, names: set[str]) -> str:
    """Return the name with the first number from 2 that makes it new.

    >>> _numbered("bucket", {"bucket", "bucket_2"})
    'bucket_3'
    """
    return next(new for n in count(2) if (new := f"{name}_{n}") not in names)


def _columns(
    pd: Any, question: PublishedQuestion, column: str, numbers: Integers
) -> dict[str, Any]:
    """Return the columns of one question in a DataFrame, named after `column`."""
    if numbers.ndim == 2:
        names = [option.id for option in question.options]
        # Sampled options have two bits each, and questions of a half-space one bit for all options.
        if len(names) != numbers.shape[1]:
            names = [f"bit_{place}" for place in range(numbers.shape[1])]
        return {
            f"{column}.{name}": _with_missing(pd, bits)
            for name, bits in zip(names, numbers.T, strict=True)
        }
    labels = labels_of(question)
    if len(labels) == question.channel.counted and not question.by_patterns:
        return {column: pd.Categorical.from_codes(numbers, categories=[*labels])}
    return {column: _with_missing(pd, numbers)}


def _with_missing(pd: Any, numbers: Integers) -> Any:
    """Return integers in which `UNASKED` is a missing value."""
    values = pd.array(numbers, dtype="Int64")
    values[numbers == UNASKED] = pd.NA
    return values
