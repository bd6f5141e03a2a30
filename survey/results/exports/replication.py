"""The replication package: reports, codebook, published figures, and scripts that recompute them.

`replicate.R` needs R alone, `replicate.py` Python and NumPy. Neither imports this software: a
reviewer who trusts only the reports and the definition can read one of them and run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import IO, TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile

from survey.errors import ChannelError, NoBaseError
from survey.estimator.numbers.distribution import grid_shares
from survey.mechanism import SubsetSelection, WeightTable
from survey.mechanism.bit_vector import TickChannel
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.display_status import NO_BASE, decide_disclosures
from survey.results.estimates.compute import (
    MAX_CHANNEL_SIZE,
    estimate_question,
    histogram_cells,
)
from survey.results.estimates.histogram import Cell
from survey.results.estimates.table import MECHANISMS, EstimateRow, RowContext, question_rows
from survey.results.exports.csv import to_csv
from survey.results.exports.microdata import write_documents, write_report_rows
from survey.results.exports.package import Package
from survey.results.exports.pseudo_values import ALL_REPORTS, Scope, write_values
from survey.results.groups import EVERYONE, OPEN_LINK, Group, split_by_link
from survey.results.question_statistics import (
    channel_size,
    opt_outs,
    single_code_channel,
    truth_labels,
    truth_values,
)
from survey.results.request import DEFAULT_OPTIONS
from survey.store import PublishedSurvey, Store, Tally
from survey.store.releases import Block, read_microdata
from survey.version import __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCRIPTS = ("replicate.R", "replicate.py")

SHARE_DECIMALS, NUMBER_DECIMALS = 6, 4
"""Printed digits of shares, and of means and mean ranks, in published.csv."""

MAX_GROUPS = 20
"""Maximum number of groups, the largest ones, whose figures are in the package."""

NOT_RECOMPUTED = {
    "suppressed": "suppressed: there are not enough responses, so no figure was published",
    "not_estimable": "the design of the question does not allow this estimate",
    NO_BASE: "hardly anybody answered, so no figure was published",
}
"""Why the scripts do not recompute a row."""

README = """{title}
Replication package for the survey {slug}, version {version}, as of release {release}.

  Rscript replicate.R      needs R (3.6 or newer) and no packages
  python3 replicate.py     needs Python (3.9 or newer) and NumPy

Each script recomputes the published shares, means, medians and intervals from the reports and
prints a line for each figure. It exits with 1 if one of them differs in the printed digits, or if a
file is not the one that the manifest describes. The formulas are in the scripts, above the lines
that compute them.

Files
  reports.csv      the released reports as the devices randomized them, in random order
  channels.csv     the probabilities of the randomization, P(report | truth)
  values.csv       for each code of a report, the value whose average is a published estimate
  weights/ID.csv   the same as integers, for questions whose reports name no answer
  displayed.csv    the displayed distributions of numbers, from which medians are read. The scripts
                   check that they fit the reports best, or compute them again if they are smoothed
  questions.csv, options.csv, answers.csv
                   what was asked: mechanisms, options, and the number that each answer stands for
  published.csv    the published figures, all at the level {level}; each interval covers one figure
  codebook.txt, codebook.xml
                   the codebook for people, and as DDI-Codebook 2.5
  definition.json  the published definition, byte for byte
  manifest.json    the SHA-256 of each file, and the version of the software

What is not recomputed
  published.csv says so in its column "recomputed", by name and with the reason, and the scripts
  repeat it: figures that were not published because there are too few responses. Cross-tabulations,
  regressions, weighted estimates, differences and trends depend on what a reader requests, so they
  are not in published.csv.{groups}
"""


@dataclass(frozen=True)
class PublishedRow:
    """A published figure.

    scope, stratum         "all" reports, or those of one "stratum"
    cell_first, cell_last  the first and last value of a histogram cell, otherwise empty
    estimate to conf_high  rounded to `decimals`
    displayed              the share of a histogram cell that the page displays, also rounded
    recomputed             "yes", or why the scripts do not recompute the figure
    """

    scope: str
    stratum: str
    question_id: str
    option_id: str
    option_label: str
    statistic: str
    base: str
    cell_first: float | None
    cell_last: float | None
    n_reports: int
    estimate: float | None
    conf_low: float | None
    conf_high: float | None
    conf_level: float
    displayed: float | None
    decimals: int
    method: str
    flag: str
    recomputed: str


@dataclass(frozen=True)
class QuestionRow:
    """The design of a question.

    form       what a report is: "answer" (the index of an answer), "pattern" (of a set of
               options), "sets" (a bit for each option), "bits", "sampled_bits" (which options the
               report covers, then its bits), or "table" (the index of a report)
    p, q       P(a report names the truth) and P(it names another answer), if there is one pair
    k, d       the number of answers, and how many of them a report names
    sampled    how many options a report covers
    pair_kept, pair_flipped  P(the bits of two options are both unchanged, both flipped)
    """

    question_id: str
    text: str
    type: str
    mechanism: str
    epsilon: float
    form: str
    p: float | None
    q: float | None
    k: int
    d: int | None
    sampled: int | None
    pair_kept: float | None
    pair_flipped: float | None


@dataclass(frozen=True)
class OptionRow:
    """An option; `is_answer` is 0 for "prefer not to say" and "does not apply"."""

    question_id: str
    option_id: str
    label: str
    is_answer: int


@dataclass(frozen=True)
class AnswerRow:
    """A true answer: its number, if it has one, and the ids of its options, in order."""

    question_id: str
    truth: int
    label: str
    value: float | None
    options: str


@dataclass(frozen=True)
class DisplayedRow:
    """The displayed share of a true answer among all respondents of a scope.

    method  "em": the most likely shares; otherwise smoothed, see replicate.py
    """

    scope: str
    stratum: str
    question_id: str
    truth: int
    share: float
    method: str


def write_replication(file: IO[bytes], store: Store, survey: PublishedSurvey) -> int:
    """Write the package as ZIP; return the number of reports."""
    tallies, blocks, n_groups = _read_state(store, survey)
    everybody = tallies[ALL_REPORTS]
    questions = survey.definition.questions
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        package = Package(archive)
        published = list(published_rows(survey, tallies))
        write_documents(package, survey, everybody, readme_name="codebook.txt")
        package.add("README.txt", _readme(survey, everybody, n_groups, len(tallies) - 1))
        package.add("published.csv", to_csv(published, PublishedRow))
        package.add_text("values.csv", lambda text: write_values(text, questions, tallies))
        package.add("displayed.csv", to_csv(displayed_rows(survey, tallies), DisplayedRow))
        for name, rows, row_type in _design_files(questions):
            package.add(name, to_csv(rows, row_type))
        for name in SCRIPTS:
            package.add(name, (Path(__file__).parent / name).read_bytes())
        package.add_text("reports.csv", lambda text: write_report_rows(text, questions, blocks))
        archive.writestr("manifest.json", _manifest(survey, everybody, package.digests))
    return everybody.n


def _read_state(
    store: Store, survey: PublishedSurvey
) -> tuple[dict[Scope, Tally], Iterator[Block], int]:
    """Return the counts of all reports and of the largest groups, and the blocks, of one release.

    The last number counts all groups.
    """
    while True:
        everybody, blocks = read_microdata(store, survey)
        groups = split_by_link(store.tallies(survey.key))
        if store.tally(survey.key).release == everybody.release:
            break
    largest = sorted(groups.items(), key=lambda item: (-item[1].n, item[0].name))[:MAX_GROUPS]
    tallies = {ALL_REPORTS: everybody}
    tallies |= {Scope("stratum", _stratum(group)): tally for group, tally in largest}
    return tallies, blocks, len(groups)


def _stratum(group: Group) -> str:
    """Return a group's name in reports.csv, which is empty for the open link."""
    return "" if group.name == OPEN_LINK else group.name


def published_rows(
    survey: PublishedSurvey, tallies: Mapping[Scope, Tally]
) -> Iterator[PublishedRow]:
    """Yield the figures of the results page with the default options, for each scope."""
    for scope, tally in tallies.items():
        for place, question in enumerate(survey.definition.questions):
            cells = {cell.id: cell for cell in histogram_cells(question)}
            for row in _estimate_rows(survey, question, tally.n_asked[place], tally.counts[place]):
                yield _published_row(scope, row, cells.get(row.option_id))


def _estimate_rows(
    survey: PublishedSurvey, question: PublishedQuestion, n: int, counts: Sequence[int]
) -> Iterator[EstimateRow]:
    """Yield the rows of a question without the remarks of its page, which take most of the time."""
    context = RowContext(
        survey=survey,
        question=question,
        n_asked=n,
        estimates=estimate_question(question, n, counts, DEFAULT_OPTIONS),
        disclosures=decide_disclosures(question, n),
        options=DEFAULT_OPTIONS,
        now=datetime.now(UTC),
        group=EVERYONE,
    )
    for rows in question_rows(context).values():
        yield from rows


def displayed_rows(
    survey: PublishedSurvey, tallies: Mapping[Scope, Tally]
) -> Iterator[DisplayedRow]:
    """Yield the displayed distributions of all questions that have a median."""
    for scope, tally in tallies.items():
        for place, question in enumerate(survey.definition.questions):
            channel, values = single_code_channel(question), truth_values(question)
            if channel is None or not values or not tally.n_asked[place]:
                continue
            if channel_size(channel) > MAX_CHANNEL_SIZE:
                continue
            try:
                grid = grid_shares(
                    tally.counts[place], channel, values, None, DEFAULT_OPTIONS.level
                )
            except (ChannelError, NoBaseError):
                continue
            for truth, share in enumerate(grid.pi.tolist()):
                yield DisplayedRow(*scope, question.id, truth, share, grid.method)


def _published_row(scope: Scope, row: EstimateRow, cell: Cell | None) -> PublishedRow:
    decimals = SHARE_DECIMALS if row.statistic == "share" else NUMBER_DECIMALS

    def digits(number: float | None) -> float | None:
        return None if number is None else round(number, decimals)

    return PublishedRow(
        scope=scope.scope,
        stratum=scope.stratum,
        question_id=row.question_id,
        option_id=row.option_id,
        option_label=row.option_label,
        statistic=row.statistic,
        base=row.base,
        cell_first=cell.first if cell else None,
        cell_last=cell.last if cell else None,
        n_reports=row.n_reports,
        estimate=digits(row.estimate),
        conf_low=digits(row.conf_low),
        conf_high=digits(row.conf_high),
        conf_level=row.conf_level,
        displayed=digits(row.mle) if cell else None,
        decimals=decimals,
        method=row.method,
        flag=row.flag,
        recomputed=_recomputed(row),
    )


def _recomputed(row: EstimateRow) -> str:
    """Return "yes", or why the scripts do not recompute a row."""
    for key in (row.flag, row.method, row.statistic):
        if key in NOT_RECOMPUTED:
            return NOT_RECOMPUTED[key]
    return "yes" if row.conf_low is not None else NOT_RECOMPUTED["suppressed"]


def _design_files(
    questions: Sequence[PublishedQuestion],
) -> Iterator[tuple[str, Iterable[DataclassInstance], type[DataclassInstance]]]:
    yield "questions.csv", map(_question_row, questions), QuestionRow
    yield "options.csv", (row for q in questions for row in _option_rows(q)), OptionRow
    yield "answers.csv", (row for q in questions for row in _answer_rows(q)), AnswerRow


def _question_row(question: PublishedQuestion) -> QuestionRow:
    channel = question.channel
    kept = flipped = p = q = None
    if not isinstance(channel, WeightTable):
        p, q = channel.p, channel.q
    if isinstance(channel, TickChannel):
        kept, flipped = map(float, channel.pair_agreements)
    return QuestionRow(
        question_id=question.id,
        text=question.text,
        type=question.type,
        mechanism=MECHANISMS[question.mechanism],
        epsilon=channel.epsilon,
        form=_report_form(question),
        p=p,
        q=q,
        k=channel.options,
        d=channel.d if isinstance(channel, SubsetSelection) else None,
        sampled=channel.sampled if isinstance(channel, TickChannel) else None,
        pair_kept=kept,
        pair_flipped=flipped,
    )


def _report_form(question: PublishedQuestion) -> str:
    channel = question.channel
    if isinstance(channel, WeightTable):
        return "table"
    if isinstance(channel, TickChannel):
        return "sampled_bits" if channel.is_sampled else "bits"
    if question.by_patterns:
        return "pattern"
    return "sets" if channel.d > 1 else "answer"


def _option_rows(question: PublishedQuestion) -> Iterator[OptionRow]:
    silent = opt_outs(question)
    for place, option in enumerate(question.options):
        yield OptionRow(question.id, option.id, option.label, int(place not in silent))


def _answer_rows(question: PublishedQuestion) -> Iterator[AnswerRow]:
    """Yield the truths of a question; of a question with bits its options."""
    values = truth_values(question)
    if question.kind.is_ranking:
        ids = [option.id for option in question.options]
        ranked = question.kind.count_ranked(question)
        orders = [*map(" ".join, permutations(ids[:ranked])), *ids[ranked:]]
        for truth, order in enumerate(orders):
            yield AnswerRow(question.id, truth, order, None, order)
        return
    points = question.grid.points if question.kind.is_numeric and question.grid else 0
    for truth, (name, label) in enumerate(truth_labels(question)):
        value = values[truth] if values else None
        yield AnswerRow(question.id, truth, label, value, "" if truth < points else name)


def _manifest(survey: PublishedSurvey, tally: Tally, digests: Mapping[str, str]) -> str:
    """Return the manifest as JSON text."""
    form = {
        "format": 1,
        "survey": survey.slug,
        "version": survey.version,
        "definition_sha256": survey.sha256,
        "release": tally.release,
        "reports": tally.n,
        "software": f"survey {__version__}",
        "files": dict(sorted(digests.items())),
    }
    return json.dumps(form, indent=1, ensure_ascii=False) + "\n"


def _readme(survey: PublishedSurvey, tally: Tally, n_groups: int, n_included: int) -> str:
    missing = n_groups - n_included
    groups = (
        f" The figures of the {missing} smallest groups are not in it either." if missing else ""
    )
    return README.format(
        title=survey.definition.title,
        slug=survey.slug,
        version=survey.version,
        release=tally.release,
        level=f"{DEFAULT_OPTIONS.level:.0%}",
        groups=groups,
    )
