"""The audit rejects clients that break the promise on purpose, and names what they do."""

from __future__ import annotations

import time

import pytest

from survey.audit.access import check_access
from survey.audit.bundled_modules import unbundle
from survey.audit.summary import run_checks, run_client
from survey.respond.client import INDEX, Client, source_files
from tests import surveys
from tests.audit.malicious import EVADING, LISTED, Malicious
from tests.conftest import long_unless

SAMPLES = 20_000
SECONDS = 10
"""How long the audit may take to reject a client by its list."""

SURVEY = surveys.publish(surveys.SAMPLING["two"])
PAGE = Client.load().page
SOURCES = {**source_files(), INDEX: PAGE}
SERVED = {**Client.load().files, INDEX: PAGE}


def served(client: Malicious) -> dict[str, bytes]:
    """Return the files of a malicious client, and their page, as a server would send them."""
    altered = SOURCES[client.file].replace(client.old.encode(), client.new.encode(), 1)
    if client.file == INDEX:
        return {**Client.load().files, INDEX: altered}
    files = Client.from_sources({**source_files(), client.file: altered}).files
    return {**files, INDEX: Client(files).page}


def first_failure(checks) -> str:
    """Return the name and detail of the first failed check, or ""."""
    return next((f"{check.name}: {check.detail}" for check in checks if not check.ok), "")


def test_there_are_more_than_sixty_clients_and_a_third_is_rejected_without_the_list():
    listed, evading = (sum(map(len, table.values())) for table in (LISTED, EVADING))
    assert set(LISTED) == set(EVADING)
    assert listed + evading >= 60
    assert evading >= (listed + evading) / 3


def test_every_client_replaces_text_of_the_source():
    clients = [
        each for table in (LISTED, EVADING) for family in table.values() for each in family.values()
    ]
    assert not [each for each in clients if each.old.encode() not in SOURCES[each.file]]
    assert len({each[:3] for each in clients}) == len(clients)


@pytest.mark.web
@pytest.mark.slow
@pytest.mark.security
@pytest.mark.parametrize("family", LISTED)
def test_a_client_that_touches_more_than_its_list_is_rejected_at_once(family):
    for name, client in LISTED[family].items():
        start = time.perf_counter()
        checks = list(run_checks(served(client), SURVEY, SAMPLES))
        reason = "\n".join(check.detail for check in checks if not check.ok)
        assert client.word in reason, (name, reason)
        assert client.file in reason, (name, reason)
        assert time.perf_counter() - start < SECONDS, name


@pytest.mark.web
def test_some_clients_pass_even_the_list():
    clients = [client for family in EVADING.values() for client in family.values()]
    passing = [c for c in clients if all(check.ok for check in check_access(served(c)))]
    assert len(passing) >= 8


@pytest.mark.web
@pytest.mark.security
@pytest.mark.parametrize("family", EVADING)
@pytest.mark.parametrize("step", long_unless([6], [6, 1]), ids=lambda step: f"one in {step}")
def test_a_client_is_rejected_by_what_it_does(node, family, step):
    for name, client in [*EVADING[family].items()][::step]:
        reason = first_failure(run_client(unbundle(served(client)), SURVEY, SAMPLES, node))
        assert client.word in reason, (name, reason)


@pytest.mark.long
@pytest.mark.parametrize("survey", ["two", "twelve"])
def test_the_genuine_client_passes_with_new_choices(node, survey):
    definition = surveys.publish(surveys.SAMPLING[survey])
    assert first_failure(run_checks(SERVED, definition, SAMPLES, node)) == ""


@pytest.mark.long
def test_the_genuine_client_passes_fifty_times(node):
    for seed in range(50):
        assert first_failure(run_checks(SERVED, SURVEY, SAMPLES, node, seed)) == "", seed
