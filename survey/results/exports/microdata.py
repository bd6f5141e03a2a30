"""The released reports as a file to publish: rows, channels and a codebook.

    README.txt       what the file is, how to debias it, and what a report reveals
    channels.json    for each question: its channel, its answers, and the meaning of a code
    channels.csv     the probabilities of each channel, one per row
    values.csv       for each code the value whose average is a published share or mean
    codebook.xml     the codebook as DDI-Codebook 2.5
    weights/ID.csv   for each question whose reports name no answer: the weights of its reports
    definition.json  the published definition, byte for byte
    reports.csv      one row per report, in random order

Every row was randomized on a device; whatever is computed from it causes no further privacy loss.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from survey.disclosure import MINIMUM_REPORTS, secure_permutation
from survey.errors import ChannelError
from survey.mechanism import AnyChannel, BitVector, WeightTable
from survey.mechanism.channel import Codes, pack_bits
from survey.mechanism.composition import format_epsilon
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.privacy_loss import report_heading, report_sentences, report_strength
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.csv import csv_writer, safe_cell
from survey.results.exports.ddi import codebook_xml
from survey.results.exports.package import Package
from survey.results.exports.pseudo_values import ALL_REPORTS, write_channels, write_values
from survey.results.exports.report_table import stored_codes
from survey.results.question_statistics import truth_labels
from survey.store import BlockColumn, PublishedSurvey, Store, Tally
from survey.store.releases import BUCKET, STRATUM, read_microdata
from survey.version import __version__

ZIP = "application/zip"

README_WIDTH = 96
"""Characters in a line of the README."""

MAX_LISTED_ANSWERS = 40
"""Questions with more answers, such as fine grids, refer to channels.json instead."""

MAX_DIGITS = 10
"""Maximum number of digits of an integer code in a cell."""

NO_PROOF = "A report never proves an answer: every report can result from every answer."
WEAK = "Weak protection: a row can make an observer almost certain of an answer."

README = """{title}
{line}
Randomized reports of the survey {slug}, version {version}: {n} rows, as of release {release}.
Definition (SHA-256): {sha256}

What a row is
  The answers of one respondent, as the respondent's own device randomized them before sending.
{loss}
  {proof}
  Rows have no id, time or address, and their order was drawn at random for this file.

How to use it
  Estimate shares of a group of people. Never read a row as the answers of a person.
  If f is the share of the reports that name an answer, and p and q are its probabilities
  (channels.json), the unbiased estimate of the share is (f - q)/(p - q), with the standard error
  sqrt(f(1-f)/n)/|p - q|. The estimate may lie outside 0 to 1.
  Do NOT keep only the rows that report a certain answer: the result is biased. To cross-tabulate
  two questions, invert both channels: P = A^-1 F (B^-1)^T, where F is the table of reports.
  Questions that were randomized jointly have one joint channel over all combinations of their
  answers (channels.json); estimate the share of a combination as that of an answer. In a half-space
  (channels.json: "half_space"), only the shares of each question can be estimated, not their table.
  To reproduce a published share or mean, look up the value of each report's code in values.csv. The
  average of plain_value over the reports that include the question (and, if reports cover only
  some options, the option) is the published estimate. It is not clipped: it may lie outside the
  possible range, where pages show only its interval. For shares among those who answered, divide
  the average of an option by 1 minus the averages of the options that are no answer.
  In Python: survey.mechanism.channel_from_json(channel), survey.estimator.proportions(counts,
  channel), survey.estimator.crosstab(table, channels).

"""

CODE_COLUMNS = f"""Columns
  {STRATUM}   the group, from the collection link; groups with few reports are combined
  {BUCKET}    the day or week of release if the survey records it, otherwise empty
  one column per question, in the order of the survey:
"""
"""The README's text about the columns of files with codes."""


def write_microdata(file: IO[bytes], store: Store, survey: PublishedSurvey) -> int:
    """Write the ZIP with one block of reports in memory at a time; return the number of reports."""
    tally, blocks = read_microdata(store, survey)
    questions = survey.definition.questions
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        package = Package(archive)
        write_documents(package, survey, tally)
        write_all_values(package, survey, tally)
        package.add_text("reports.csv", lambda text: write_report_rows(text, questions, blocks))
    return tally.n


def write_documents(
    package: Package,
    survey: PublishedSurvey,
    tally: Tally,
    *,
    readme_name: str = "README.txt",
    columns: str = CODE_COLUMNS,
) -> None:
    """Write the files that accompany reports in any format, but not their values."""
    questions = survey.definition.questions
    package.add(readme_name, readme(survey, tally.n, tally.release, columns))
    channels = json.dumps(describe_channels(survey), indent=1, ensure_ascii=False)
    package.add("channels.json", channels + "\n")
    package.add_text("channels.csv", lambda text: write_channels(text, questions))
    package.add("codebook.xml", codebook_xml(survey, tally))
    package.add("definition.json", survey.canonical)
    for question in questions:
        if isinstance(question.channel, WeightTable):
            package.add(weights_file(question), _weights_csv(question.channel))


def write_all_values(package: Package, survey: PublishedSurvey, tally: Tally) -> None:
    """Write the values of all reports as values.csv."""
    questions = survey.definition.questions
    package.add_text("values.csv", lambda text: write_values(text, questions, {ALL_REPORTS: tally}))


def weights_file(question: PublishedQuestion) -> str:
    """Return the path of a question's weights file; every question id is a safe file name."""
    return f"weights/{question.id}.csv"


def describe_channels(survey: PublishedSurvey) -> dict[str, Any]:
    """Return everything that debiasing requires, for channels.json."""
    return {
        "survey": survey.slug,
        "version": survey.version,
        "definition_sha256": survey.sha256,
        "software": f"survey {__version__}",
        "questions": [_describe_channel(question) for question in survey.definition.questions],
    }


def readme(survey: PublishedSurvey, n: int, release: int, columns: str = CODE_COLUMNS) -> str:
    """Return the README: a codebook for people, with a text about the columns of its file."""
    title = survey.definition.title
    head = README.format(
        title=title,
        line="=" * min(len(title), README_WIDTH),
        slug=survey.slug,
        version=survey.version,
        sha256=survey.sha256,
        n=f"{n:,}",
        release=release,
        proof=WEAK if report_strength(survey.definition) == "weak" else NO_PROOF,
        loss=fill(
            f"{report_heading(survey.definition)}. {report_sentences(survey.definition.ratio)}",
            README_WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
        ),
    )
    return (
        head
        + columns
        + "".join(_readme_section(question) for question in survey.definition.questions)
    )


def report_cells(question: PublishedQuestion, stored: Codes) -> NDArray[np.object_]:
    """Return the stored codes of one question as cells, shape (n,); "" if it was not asked.

    A cell is an integer, or bits separated by spaces, which no spreadsheet reads as a number.
    """
    is_asked, codes = stored_codes(question, stored)
    # Format each distinct code once.
    distinct, index = np.unique(codes, axis=0, return_inverse=True)
    texts = np.array([_format_code(question, code) for code in distinct], dtype=object)
    cells: NDArray[np.object_] = texts[index.ravel()]
    cells[~is_asked] = ""
    return cells


def _weights_csv(channel: WeightTable) -> str:
    """Return the integer weights: a row for each answer, a column for each report.

    P(report | answer) is the weight divided by the sum of its row.
    """
    text = io.StringIO()
    writer = csv_writer(text)
    writer.writerow(["answer", *range(channel.reports)])
    writer.writerows([answer, *row] for answer, row in enumerate(channel.weights.tolist()))
    return text.getvalue()


def write_report_rows(
    text: IO[str], questions: Sequence[PublishedQuestion], blocks: Iterator[list[BlockColumn]]
) -> None:
    """Write reports.csv with one block of reports in memory at a time."""
    writer = csv_writer(text)
    writer.writerow([STRATUM, BUCKET, *(question.id for question in questions)])
    for block in blocks:
        # A new order for every file, so that nobody can match two files row by row.
        order = secure_permutation(block[0].n)
        groups = [[safe_cell(block[0].stratum)] * len(order), [block[0].bucket] * len(order)]
        cells = (
            report_cells(question, np.frombuffer(column.data, np.uint8))[order].tolist()
            for question, column in zip(questions, block, strict=True)
        )
        writer.writerows(zip(*groups, *cells, strict=True))


def _format_code(question: PublishedQuestion, code: Codes) -> str:
    bits = question.channel.report_bits
    if bits:
        return " ".join(map(str, np.unpackbits(code)[:bits].tolist()))
    return str(int.from_bytes(code.tobytes(), "big"))


def encode_cell(channel: AnyChannel, cell: str) -> bytes:
    """Return the stored bytes of a cell, the inverse of `report_cells`.

    Raises ChannelError for anything but a code of the channel.

    >>> from survey.mechanism import grr
    >>> encode_cell(grr(3, "3/4"), "2")
    b'\\x02'
    """
    if not channel.report_bits:
        # More digits than any code: int() would take long for a million of them.
        if not (cell.isascii() and cell.isdecimal() and len(cell) <= MAX_DIGITS):
            raise ChannelError(f"must be an integer from 0 to {channel.counted - 1}")
        return channel.encode(int(cell))
    bits = cell.split(" ")
    if len(bits) != channel.report_bits or not set(bits) <= {"0", "1"}:
        raise ChannelError(f"must be {channel.report_bits} bits, separated by spaces")
    members = [place for place, bit in enumerate(bits) if bit == "1"]
    return channel.encode(pack_bits(members, channel.report_bits))


def _describe_channel(question: PublishedQuestion) -> dict[str, Any]:
    channel = question.channel
    is_table = isinstance(channel, WeightTable)
    p, q = (None, None) if isinstance(channel, WeightTable) else (channel.p, channel.q)
    return {
        "id": question.id,
        "text": question.text,
        "type": question.type,
        "mechanism": MECHANISMS[question.mechanism],
        "channel": channel.to_json(),
        "joint": question.joint.to_json() if question.joint else None,
        "k": channel.options,
        "p": p,
        "q": q,
        "epsilon": channel.epsilon,
        "answers": [{"id": name, "label": label} for name, label in truth_labels(question)],
        "no_answers": [name for name in (question.opt_out, question.not_applicable) if name],
        "code": "bits" if channel.report_bits else "integer",
        "weights": weights_file(question) if is_table else None,
        "reading": _describe_code(question),
    }


def _describe_code(question: PublishedQuestion) -> str:
    """Return what a question's code means, and how to estimate shares from it."""
    channel = question.channel
    if isinstance(channel, BitVector) and channel.is_sampled:
        m = channel.m
        text = (
            f"{m} bits that state which answers this report covers, then {m} bits that state which "
            "of these it names. share = (f - q)/(p - q), with f among the reports that cover the "
            "answer."
        )
    elif channel.report_bits:
        text = "One bit per answer: 1 if the report names it. share = (f - q)/(p - q)."
    elif isinstance(channel, WeightTable):
        text = (
            f"The index of the report, from 0: the column of {weights_file(question)}. With f the "
            "shares of the reports and P the weights, each row divided by its sum, solve f = "
            "shares times P; or average numbers g for which P times g = x."
        )
    else:
        text = "The index of the named answer in answers, from 0. share = (f - q)/(p - q)."
    if not question.nullable:
        return text
    return (
        f"{text} An empty cell: this respondent was not asked, or fewer than {MINIMUM_REPORTS} "
        "respondents of the group were."
    )


def _describe_joint(question: PublishedQuestion) -> list[str]:
    """Return a line about the questions that were randomized jointly with this one, if any."""
    if question.joint is None:
        return []
    others = " and ".join(id_ for id_ in question.joint.questions if id_ != question.id)
    epsilon = format_epsilon(question.joint.channel.epsilon)
    return [f"  randomized jointly with {others}: joint epsilon {epsilon}"]


def _readme_section(question: PublishedQuestion) -> str:
    names = truth_labels(question)
    listed = [f"  {index}  {label}" for index, (_, label) in enumerate(names)]
    if len(names) > MAX_LISTED_ANSWERS:
        listed = [f"  {len(names)} answers: see channels.json"]
    lines = [
        f"{question.id}: {question.text}",
        f"  {MECHANISMS[question.mechanism]}, epsilon {format_epsilon(question.channel.epsilon)} "
        "for this question alone",
        *_describe_joint(question),
        fill(_describe_code(question), README_WIDTH, initial_indent="  ", subsequent_indent="  "),
        *listed,
    ]
    return "\n" + "\n".join(lines) + "\n"
