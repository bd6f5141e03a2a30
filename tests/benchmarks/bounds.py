"""Measure the largest definitions that are accepted: `python -m tests.benchmarks.bounds [--short]`.

Set OPENBLAS_NUM_THREADS=1, as the server does for the process that answers researchers.
Each case is a survey with the maximum number of questions of one type, all with separate channels.
The figures are seconds until a browser shows the page or its progress, in the process that answers
researchers. If the first response was the progress, the seconds until the page opened follow.
Before a cold request, nothing is cached; a warm request repeats it. The last lines are definitions
beyond the limits, which must be rejected. `--short` takes a few questions of each type.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from math import factorial
from pathlib import Path

import numpy as np
from flask.testing import FlaskClient

from survey.app import create_app
from survey.collect.publication import publish
from survey.errors import DefinitionError
from survey.mechanism.channel import MAX_GRID
from survey.mechanism.weight_table import MAX_RANKED
from survey.questionnaire.definition import MAX_QUESTIONS
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.kinds.matrix import MAX_ROWS
from survey.questionnaire.limits import MAX_CELLS
from survey.questionnaire.loading import load, parse
from survey.research.credentials import Passwords
from survey.research_relay import Relay
from survey.settings import Caps, Settings
from survey.store import N_ASKED, PublishedSurvey, Store, open_store
from tests.benchmarks.dashboard import FEW_REPORTS, clear_caches, codes, sign_in_to_app
from tests.benchmarks.short import benchmark_parser
from tests.benchmarks.storage import today
from tests.conftest import EMAIL, PASSWORD, SECRET
from tests.store.databases import DirectAccess
from tests.web.clients import answering

MAX_SECONDS = 1.0

OPTIONS = 90
"""Number of options of a choice; with "prefer not to say", it is close to the maximum."""

BROWSER = {"Accept": "text/html"}

DRAFT_PAGES = ("", "/plan", "/preview", "/publish")
RESULT_PAGES = ("", "/estimates.csv?level=0.8", "/report?level=0.7", "/../explore")


def numbers(n: int, points: int) -> list[str]:
    """Return number questions with this number of points each."""
    return [f'type = "number"\nlow = {i}\nhigh = {i + points - 1}\nstep = 1' for i in range(n)]


def entries(name: str, n: int, key: str) -> str:
    """Return a list of options or of rows."""
    tables = (f'{{id = "e{i}", {key} = "Entry {i}"}}' for i in range(n))
    return f"{name} = [{', '.join(tables)}]"


def cases(largest: int) -> dict[str, list[str]]:
    """Return the questions of each case; there are at most `largest` of them."""
    n_large = min(MAX_CELLS // MAX_GRID**2, largest)
    points = int((MAX_CELLS / MAX_QUESTIONS) ** 0.5)
    choice = 'type = "single_choice"\n' + entries("options", OPTIONS, "label")
    ticks = 'type = "multiple_choice"\n' + entries("options", OPTIONS, "label")
    rows = entries("rows", MAX_ROWS, "text")
    n_matrices = min(MAX_QUESTIONS // MAX_ROWS, largest)
    return {
        "largest numbers": numbers(n_large, MAX_GRID),
        "most numbers": numbers(min(MAX_QUESTIONS, largest), points),
        "choices": [choice] * min(MAX_QUESTIONS, largest),
        "multiple choices": [ticks] * min(MAX_QUESTIONS // 4, largest),
        "matrices": [f'type = "matrix"\nlow = 1\nhigh = 11\n{rows}'] * n_matrices,
        "rankings": ['type = "ranking"\n' + entries("options", 5, "label")]
        * min(MAX_QUESTIONS, largest),
        "largest rankings": ['type = "ranking"\n' + entries("options", MAX_RANKED, "label")]
        * min(MAX_CELLS // factorial(MAX_RANKED) ** 2, largest),
    }


def definition(slug: str, questions: Sequence[str]) -> bytes:
    """Return a survey whose questions all have different epsilons."""
    heads = (
        f'[[questions]]\nid = "q{i}"\ntext = "Question {i}?"\nepsilon = "{1 + i / 1000:.3f}"\n'
        for i in range(len(questions))
    )
    text = "".join(f"{head}{body}\n" for head, body in zip(heads, questions, strict=True))
    # The epsilon of a whole report has a separate limit.
    return f'slug = "{slug}"\ntitle = "Large"\nquestions_per_person = 1\n{text}'.encode()


def add_results(store: Store, url: str, survey: PublishedSurvey) -> None:
    """Add the counts of released reports."""
    rng = np.random.default_rng(1)

    def counts() -> Iterator[tuple[int | str | bytes, ...]]:
        for number, question in enumerate(survey.definition.questions):
            n_asked, supports = question.count(codes(question, FEW_REPORTS, rng))
            yield survey.key, "", "", number, N_ASKED, n_asked
            for place, count in enumerate(supports.tolist()):
                yield survey.key, "", "", number, place, count

    store.insert_rows("counts", sorted(counts()))
    DirectAccess(url).run(
        "UPDATE release SET number = 1, n = ? WHERE survey = ?", [FEW_REPORTS, survey.key]
    )


def measure(url: str, all_cases: Mapping[str, Sequence[str]]) -> None:
    """Print the time of each page of each case."""
    store = open_store(url)
    store.migrate()
    owner = store.add_researcher(EMAIL, Passwords(1).hash(PASSWORD)).key
    app = create_app(Settings(secret=SECRET, database=url, password_cost=1), store)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "research"
        with answering(app.wsgi_app, path):
            app.wsgi_app = Relay(app.wsgi_app, str(path))  # type: ignore[method-assign]
            client = app.test_client()
            sign_in_to_app(client)
            _measure_pages(client, store, url, owner, all_cases)
    store.close_connections()


def _measure_pages(
    client: FlaskClient,
    store: Store,
    url: str,
    owner: int,
    all_cases: Mapping[str, Sequence[str]],
) -> None:
    for name, questions in all_cases.items():
        slug = name.replace(" ", "-")
        text = definition(slug, questions)
        content = draft_from(parse(text, "large.toml")).to_json()
        draft = store.add_draft(content, EMAIL, 0, {owner: "owner"})
        survey = publish(store, load(text, "large.toml", Caps()), today())
        add_results(store, url, survey)
        addresses = [
            *(f"/research/drafts/{draft.slug}{page}" for page in DRAFT_PAGES),
            *(f"/research/surveys/{slug}/1{page}" for page in RESULT_PAGES),
        ]
        for address in (address.replace("/1/..", "") for address in addresses):
            clear_caches()
            for state in ("cold", "warm"):
                page = address.partition("/research/")[2].partition("?")[0]
                print_page(client, address, f"{len(questions)} {name}: {page}, {state}")


def print_page(client: FlaskClient, address: str, label: str) -> None:
    """Open a page as a browser does; print the seconds until it shows the page or its progress."""
    start = time.perf_counter()
    response = client.get(address, headers=BROWSER)
    first = time.perf_counter() - start
    print_figure(label, first)
    if response.status_code == HTTPStatus.ACCEPTED:
        while response.status_code == HTTPStatus.ACCEPTED:
            time.sleep(1)
            response = client.get(address, headers=BROWSER)
        print(f"{'    opened after':<72}{time.perf_counter() - start:>9.2f} s", flush=True)
    if response.status_code != HTTPStatus.OK:
        raise RuntimeError(f"{address}: status {response.status_code}")


def print_figure(label: str, seconds: float) -> None:
    status = "yes" if seconds <= MAX_SECONDS else "MISSED"
    ratio = seconds / MAX_SECONDS
    print(f"{label:<72}{seconds:>9.2f} s{MAX_SECONDS:>7.1f}{ratio:>8.2f}  {status}", flush=True)


def check_refusals() -> None:
    """Require that definitions beyond the limits are rejected, and print the time this takes."""
    for n in (MAX_CELLS // MAX_GRID**2 + 1, 60, MAX_QUESTIONS):
        start = time.process_time()
        try:
            load(definition("large", numbers(n, MAX_GRID)), "large.toml", Caps())
        except DefinitionError as error:
            if "choose larger steps" not in str(error):
                raise
            print_figure(
                f"{n} numbers of {MAX_GRID:,} values: refused", time.process_time() - start
            )
        else:
            raise RuntimeError(f"{n} numbers of {MAX_GRID:,} values are accepted")


def main() -> None:
    """Measure all cases."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--case", action="append", help="measure only these cases")
    options = parser.parse_args()
    chosen = cases(2 if options.short else MAX_QUESTIONS)
    print(f"{'':<72}{'figure':>9}  {'target':>7}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        url = f"sqlite:///{Path(scratch) / 'bounds.db'}"
        measure(url, {name: chosen[name] for name in options.case or chosen})
    check_refusals()


if __name__ == "__main__":
    main()
