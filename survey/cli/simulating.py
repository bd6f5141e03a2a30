"""The command that rehearses a published survey: simulated people answer a copy of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from survey.cli.common import configured_store, refusing
from survey.cli.printing import form_options, print_result, reading_options
from survey.collect.release import release, utc_today
from survey.collect.simulated import collected
from survey.collect.simulated_people import Shares, simulated_people, typed_shares
from survey.collect.truths import Truth, truths_of
from survey.errors import DesignError
from survey.questionnaire.definition import Definition, unpublished
from survey.results.estimates.result import Results
from survey.results.options import Wanted
from survey.results.wording import amounts
from survey.store import PublishedSurvey, Store, find_survey, open_store


@click.command("simulate")
@click.argument("slug")
@click.option("--n", default=2_000, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option(
    "--true",
    "typed",
    multiple=True,
    metavar="QUESTION=SHARE,...",
    help="True shares of its options, as fractions, in order; may be given for each question.",
)
@reading_options
@form_options
@refusing
def simulate_survey(
    slug: str,
    n: int,
    typed: Sequence[str],
    version: int | None,
    form: str | None,
    **asked: Any,
) -> None:
    """Print what SLUG would tell of N simulated people; nothing of them is kept.

    They answer a copy of the survey in a database of its own, which is deleted at the end.
    """
    wanted = Wanted(**asked)
    definition = unpublished(find_survey(configured_store(), slug, version).definition)
    shares = typed_shares(definition, dict(map(_parted, typed)))
    with _own_store() as store:
        survey = store.publish(definition, utc_today())
        _answer(store, survey, n, shares, np.random.default_rng())
        print_result(Results(store).of(survey, wanted), form)
    if form is None:
        click.echo("\n".join(["", *_true_lines(definition, truths_of(definition, shares))]))


def _parted(text: str) -> tuple[str, list[float]]:
    """`slept=.1,.8,.1` as a question and its shares."""
    question, _, shares = text.partition("=")
    try:
        return question, [float(share) for share in shares.split(",")]
    except ValueError:
        raise DesignError(
            f"--true {text}: must be a question and its shares, such as slept=.1,.8,.1"
        ) from None


@contextmanager
def _own_store() -> Iterator[Store]:
    with TemporaryDirectory(prefix="survey-simulated-") as directory:
        store = open_store(f"sqlite:///{Path(directory) / 'simulated.db'}")
        try:
            store.migrate()
            yield store
        finally:
            store.close_connections()


def _answer(
    store: Store, survey: PublishedSurvey, n: int, shares: Shares, rng: np.random.Generator
) -> None:
    people = simulated_people(survey.definition, n, shares, rng)
    with click.progressbar(
        length=n, label="Simulated people", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for stored in collected(store, survey, people):
            bar.update(stored)
    release(store, survey, 1)


def _true_lines(definition: Definition, truths: dict[str, Truth]) -> Iterator[str]:
    """What the estimates above would be if nothing were random."""
    yield "All of this is simulated. What the people were drawn from:"
    for question in definition.questions:
        if (truth := truths.get(question.id)) is None:
            continue
        yield f"  {question.text}"
        width = max((len(option.label) for option in question.options), default=0)
        for option in question.options:
            yield f"    {option.label:<{width}}  {truth.shares[option.id]:.1%}"
        if truth.mean is not None:
            yield f"    Mean of those who answer: {amounts(question, 'mean').text(truth.mean)}"
