"""The released reports themselves as a file to give away: rows, channels, and how to read them.

    README.txt       what it is, how to debias it, what a report never proves
    channels.json    of each question its channel, its answers, and what a code means
    weights/ID.csv   of each question whose reports name no answer: the chances of its reports
    definition.json  the published definition, byte for byte
    reports.csv      one row per report, in an order that tells nothing

Every row was randomized on a device; what is computed from it costs no more privacy.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from survey.disclosure import secure_permutation
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.mechanism.accounting import format_epsilon
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.kinds.base import ASKED
from survey.results.crosstab.compute import answers
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.csv import neutral
from survey.store import BlockColumn, PublishedSurvey, Store
from survey.store.readable import BUCKET, STRATUM, readable_reports
from survey.version import __version__

ZIP = "application/zip"


def write_microdata(file: IO[bytes], store: Store, survey: PublishedSurvey) -> int:
    """Write the ZIP, one block of reports in memory at a time; returns how many there are."""
    tally, blocks = readable_reports(store, survey)
    with ZipFile(file, "w", ZIP_DEFLATED) as packed:
        write_documents(packed, survey, tally.n, tally.release)
        packed.writestr("definition.json", survey.canonical)
        with packed.open("reports.csv", "w", force_zip64=True) as member:
            text = io.TextIOWrapper(member, encoding="utf-8", newline="")
            _write_rows(text, survey.definition.questions, blocks)
            text.flush()
    return tally.n


def write_documents(packed: ZipFile, survey: PublishedSurvey, n: int, release: int) -> None:
    """Write what stands beside the reports, whatever their form."""
    packed.writestr("README.txt", read_me(survey, n, release))
    written = json.dumps(channels(survey), indent=1, ensure_ascii=False)
    packed.writestr("channels.json", written + "\n")
    for question in survey.definition.questions:
        if isinstance(question.channel, WeightTable):
            packed.writestr(weights_name(question), _weights(question.channel))


def weights_name(question: PublishedQuestion) -> str:
    """The file of a question's chances; an id is letters, digits and underscores."""
    return f"weights/{question.id}.csv"


def _weights(channel: WeightTable) -> str:
    """Chances as whole numbers: a row for each answer, a column for each report.

    P(report | answer) is the number divided by the sum of its row.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["answer", *range(channel.reports)])
    writer.writerows([place, *row] for place, row in enumerate(channel.weights.tolist()))
    return text.getvalue()


def _write_rows(
    text: IO[str], questions: Sequence[PublishedQuestion], blocks: Iterator[list[BlockColumn]]
) -> None:
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([STRATUM, BUCKET, *(question.id for question in questions)])
    for block in blocks:
        # Anew for every file: nobody can lay two of them beside each other row by row.
        order = secure_permutation(block[0].n)
        named = [[neutral(block[0].stratum)] * len(order), [block[0].bucket] * len(order)]
        codes = (
            cells_of(question, np.frombuffer(column.data, np.uint8))[order].tolist()
            for question, column in zip(questions, block, strict=True)
        )
        writer.writerows(zip(*named, *codes, strict=True))


def cells_of(question: PublishedQuestion, stored: NDArray[np.uint8]) -> NDArray[np.object_]:
    """The stored codes of one question as cells, shape (n,); "" where it was not drawn.

    An integer, or bits with a space between, which no spreadsheet takes for a number.
    """
    codes = stored.reshape(-1, question.code_bytes)
    drawn = np.ones(len(codes), dtype=bool)
    if question.nullable:
        drawn, codes = codes[:, 0] == ASKED[0], codes[:, 1:]
    # Each code there is is written once, and put where it stands.
    different, place = np.unique(codes, axis=0, return_inverse=True)
    written = np.array([_cell(question, code) for code in different], dtype=object)
    cells: NDArray[np.object_] = written[place.ravel()]
    cells[~drawn] = ""
    return cells


def _cell(question: PublishedQuestion, code: NDArray[np.uint8]) -> str:
    length = bits_of(question)
    if length:
        return " ".join(map(str, np.unpackbits(code)[:length].tolist()))
    return str(int.from_bytes(code.tobytes(), "big"))


def bits_of(question: PublishedQuestion) -> int:
    """The bits of a code; 0 for one that is an integer."""
    channel = question.channel
    if isinstance(channel, BitVector):
        return channel.bits
    return channel.k if isinstance(channel, SubsetSelection) and channel.d > 1 else 0


def channels(survey: PublishedSurvey) -> dict[str, Any]:
    """All that debiasing takes, as JSON."""
    return {
        "survey": survey.slug,
        "version": survey.version,
        "definition_sha256": survey.sha256,
        "software": f"survey {__version__}",
        "questions": [_channel(question) for question in survey.definition.questions],
    }


def _channel(question: PublishedQuestion) -> dict[str, Any]:
    channel = question.channel
    return {
        "id": question.id,
        "text": question.text,
        "type": question.type,
        "mechanism": MECHANISMS[question.mechanism],
        "channel": channel.to_json(),
        "k": channel.options,
        "p": None if isinstance(channel, WeightTable) else channel.p,
        "q": None if isinstance(channel, WeightTable) else channel.q,
        "epsilon": channel.epsilon,
        "answers": [{"id": name, "label": label} for name, label in answers(question)],
        "no_answers": [each for each in (question.opt_out, question.not_applicable) if each],
        "code": "bits" if bits_of(question) else "integer",
        "weights": weights_name(question) if isinstance(channel, WeightTable) else None,
        "reading": reading(question),
    }


def reading(question: PublishedQuestion) -> str:
    """What a code of a question says, and how shares come of it."""
    channel = question.channel
    empty = " An empty cell: not drawn for this person." if question.nullable else ""
    if isinstance(channel, BitVector) and channel.is_sampled:
        m = channel.m
        said = (
            f"{m} bits that say which answers this report tells about, then {m} bits that say "
            "which of these it names. share = (f - q)/(p - q), f among those told about."
        )
    elif bits_of(question):
        said = "One bit per answer: 1 where the report names it. share = (f - q)/(p - q)."
    elif isinstance(channel, WeightTable):
        said = (
            f"The place of the report, from 0: the column of {weights_name(question)}. With f the "
            "shares of the reports and P the weights, each row divided by its sum, solve f = "
            "shares times P; or average numbers g for which P times g = x."
        )
    else:
        said = "The place of the named answer in answers, from 0. share = (f - q)/(p - q)."
    return said + empty


def read_me(survey: PublishedSurvey, n: int, release: int) -> str:
    """The text beside the reports: a codebook for people."""
    title = survey.definition.title
    head = README.format(
        title=title,
        line="=" * min(len(title), WIDTH),
        slug=survey.slug,
        version=survey.version,
        sha256=survey.sha256,
        n=f"{n:,}",
        release=release,
        epsilon=format_epsilon(survey.definition.epsilon),
        stratum=STRATUM,
        bucket=BUCKET,
    )
    return head + "".join(_lines(question) for question in survey.definition.questions)


def _lines(question: PublishedQuestion) -> str:
    named = answers(question)
    listed = [f"  {place}  {label}" for place, (_, label) in enumerate(named)]
    if len(named) > MOST_LISTED:
        listed = [f"  {len(named)} answers: see channels.json"]
    epsilon = format_epsilon(question.channel.epsilon)
    lines = [
        f"{question.id}: {question.text}",
        f"  {MECHANISMS[question.mechanism]}, epsilon {epsilon}",
        fill(reading(question), WIDTH, initial_indent="  ", subsequent_indent="  "),
        *listed,
    ]
    return "\n" + "\n".join(lines) + "\n"


WIDTH = 96
"""Characters of a line of the text."""

MOST_LISTED = 40
"""Answers that the text lists; grids of more are in channels.json."""

README = """{title}
{line}
Perturbed reports of the survey {slug}, version {version}: {n} rows, as of release {release}.
Definition (SHA-256): {sha256}

What a row is
  One person's random answers, as that person's own device drew them before anything was sent.
  A report never proves an answer: every report can come from every answer. All answers of one
  person together have epsilon {epsilon}: whatever anybody believed before, a row multiplies the
  odds of one set of answers against another by at most e to that power.
  No row has an id, a time or an address, and the order was drawn anew for this file.

What to do with it
  Estimate shares of a group of people; never read a row as somebody's answer.
  With f the share of reports that name an answer and its p and q (channels.json), the unbiased
  share is (f - q)/(p - q), its standard error sqrt(f(1-f)/n)/|p - q|. It may lie outside 0 to 1.
  Do NOT keep only the rows that report some answer: that is biased. Cross two questions by
  inverting both channels: P = A^-1 F (B^-1)^T, where F is the table of reports.
  In Python: survey.mechanism.channel_from_json(channel), survey.estimator.proportions(counts,
  channel), survey.estimator.crosstab(table, channels).

Columns
  {stratum}   the link that was used, openly known; links with few reports are together
  {bucket}    the day or week of release where the survey keeps it, else empty
  one per question, in the survey's order:
"""
