"""`survey verify` finds every alteration of what a server sends, and none in a genuine server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path, PurePath

import pytest
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from survey.cli import main
from survey.respondent_texts import LANGUAGES
from survey.store import PublishedSurvey, Store
from survey.verification import manifest as manifests
from survey.verification.connection import Response
from survey.verification.manifest import Difference, known_manifests
from survey.verification.run import DEFAULT_VISITS, verify
from survey.verification.visitors import Visitor
from survey.verification.visits import Fetch, Target, Visit, probe, visit
from tests.conftest import ONION
from tests.deploy.proxy import HOST, Proxy
from tests.store.tablets import publish_for_tablets
from tests.verification.tampering import (
    Alteration,
    Decide,
    all_alterations,
    always,
    field_alterations,
    one_in_ten,
    only_for,
    tampering_proxy,
)

pytestmark = pytest.mark.web

ORIGIN = "http://localhost"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def link(url: str, survey: PublishedSurvey) -> str:
    return f"{url}/s/small#d={survey.definition.sha256[:32]}"


class Simulation:
    """Verifications of the application in this process, whose responses are remembered."""

    def __init__(self, client: FlaskClient, survey: PublishedSurvey) -> None:
        self._request = cache(self._get)
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self._client = client
        self._target = Target.parse(link(ORIGIN, survey))

    def _get(self, path: str, coding: str, accept: str) -> Response:
        headers = {"Accept-Encoding": coding, "Accept": accept}
        answer = self._client.get(path, headers=headers)
        url = f"{ORIGIN}{path}"
        return Response(url, answer.status_code, tuple(answer.headers.items()), answer.data)

    def verify(
        self, alteration: Alteration, decide: Decide, n_visits: int = DEFAULT_VISITS
    ) -> tuple[int, str]:
        """Return the exit status and the text of a verification of an altered server."""
        known = known_manifests("")

        def fetch_as(visitor: Visitor) -> Fetch:
            is_altered = decide(visitor.headers("document"))

            def fetch(url: str, headers: Mapping[str, str]) -> Response:
                path = url.removeprefix(ORIGIN)
                self.requests.append((path, headers))
                # Addresses without a file contain random digits.
                path = "/missing" if path.count("/") == 1 and "." not in path else path
                response = self._request(path, headers["Accept-Encoding"], headers["Accept"])
                return alteration.apply(response) if is_altered else response

            return fetch

        def make_visit(visitor: Visitor) -> Visit:
            return visit(self._target, visitor, fetch_as(visitor), known)

        def make_probe(visitor: Visitor) -> Visit:
            return probe(self._target, visitor, fetch_as(visitor), known)

        result = verify(
            self._target, make_visit, make_probe, n_visits=n_visits, sleep=lambda _: None
        )
        return result.exit_status, result.to_text()


@pytest.fixture
def simulation(client: FlaskClient, small: PublishedSurvey) -> Simulation:
    return Simulation(client, small)


def test_requests_that_no_browser_makes_come_after_all_visits(simulation: Simulation):
    assert simulation.verify(NOTHING, always, 12)[0] == 0
    paths = [path for path, _ in simulation.requests]
    loaded = {"/s/small", "/s/small/definition.json"}
    unneeded = ("/favicon.svg", *(f"/words.{language}.json" for language in LANGUAGES[1:]))
    unusual = next(
        i
        for i, path in enumerate(paths)
        if path.endswith(unneeded) or (path not in loaded and path.count("/") < 3)
    )
    visits, afterwards = paths[:unusual], paths[unusual:]
    assert visits.count("/s/small/definition.json") >= 12
    assert {path for path in visits if not path.startswith("/client/")} == loaded
    assert all(sum(path.endswith(name) for path in afterwards) == 12 for name in unneeded)
    # The client lets the cache answer, except for the definition.
    for path, headers in simulation.requests[:unusual]:
        assert ("Cache-Control" in headers) == path.endswith("/definition.json")
    kinds = [PurePath(path).suffix for path in visits[: visits.index("/s/small", 1)]]
    order = [kind for kind, _ in groupby(kinds)]
    assert order[:4] == ["", ".css", ".js", ".json"]


NOTHING = Alteration("nothing", "", lambda response: response, "", "")


def is_named(alteration: Alteration, text: str) -> bool:
    return any(
        line.startswith(f"  {alteration.where}: ") and alteration.what.lower() in line.lower()
        for line in text.splitlines()
    )


def simulated_alterations() -> list[Alteration]:
    """Return the alterations; only a real connection has malformed lines."""
    return [each for each in all_alterations() if each.name != "malformed line"]


def test_a_proxy_that_alters_anything_is_found(serve: Callable[..., str], small: PublishedSurvey):
    upstream, overlooked = serve(), []
    for alteration in all_alterations():
        with tampering_proxy(upstream, alteration, always) as url:
            result = run(link(url, small), "--visits", "1", "--without-audit")
        # An unknown version in every visit cannot be compared, and the output says so.
        status = 2 if alteration.name == "other version" else 1
        is_reported = status == 2 or is_named(alteration, result.output)
        if result.exit_code != status or not is_reported:
            overlooked.append((alteration.name, result.exit_code, result.output))
    assert overlooked == []


@pytest.mark.long
def test_an_alteration_for_one_profile_is_found_with_the_default_visits(simulation: Simulation):
    overlooked = []
    profiles = [
        ("User-Agent", "iPhone"),
        ("User-Agent", "Edg/"),
        ("Accept-Language", "ar"),
        ("Accept-Encoding", "identity"),
        ("Cookie", "visited"),
    ]
    for at, alteration in enumerate(simulated_alterations()):
        profile = profiles[at % len(profiles)]
        status, text = simulation.verify(alteration, only_for(*profile))
        if status != 1 or not is_named(alteration, text) or "in all of these" not in text:
            overlooked.append((alteration.name, profile, text))
    assert overlooked == []


def test_an_alteration_of_field_mode_is_found_with_the_link_of_its_survey(
    client: FlaskClient, store: Store, tmp_path: Path
):
    simulation = Simulation(client, publish_for_tablets(store, tmp_path))
    assert simulation.verify(NOTHING, always, 2)[0] == 0
    overlooked = []
    for alteration in field_alterations():
        status, text = simulation.verify(alteration, always, 1)
        if status != 1 or not is_named(alteration, text):
            overlooked.append((alteration.name, text))
    assert overlooked == []


@pytest.mark.long
def test_an_alteration_in_one_of_ten_visits_is_found(simulation: Simulation):
    # Each run overlooks it with probability .9^66 < .001; the seeds make the outcome certain.
    overlooked = []
    for seed, alteration in enumerate(simulated_alterations()):
        status, text = simulation.verify(alteration, one_in_ten(random.Random(seed)))
        if status != 1 or not is_named(alteration, text):
            overlooked.append((alteration.name, text))
    assert overlooked == []


@pytest.mark.long
def test_an_alteration_in_one_of_ten_visits_is_found_in_99_percent_of_200_runs(
    simulation: Simulation,
):
    alteration = next(a for a in all_alterations() if a.name == "main.js altered")
    rng = random.Random(20)
    found = sum(simulation.verify(alteration, one_in_ten(rng))[0] == 1 for _ in range(200))
    assert found >= 198


def test_a_selective_proxy_is_found_with_the_default_visits(
    serve: Callable[..., str], small: PublishedSurvey
):
    alteration = next(a for a in all_alterations() if a.name == "main.js altered")
    with tampering_proxy(serve(), alteration, only_for("User-Agent", "iPhone")) as url:
        result = run(link(url, small), "--without-audit")
    assert result.exit_code == 1
    assert "of 66 visits; browser 'Safari, iPhone' in all of these and no others" in result.output


def test_a_genuine_server_gives_no_false_alarm(serve: Callable[..., str], small: PublishedSurvey):
    result = run(link(serve(), small), "--without-audit")
    assert result.exit_code == 0, result.output
    assert "sends the published client" in result.output
    assert "66 visits, all identical" in result.output
    assert "altered 7% or more" in result.output


def test_a_genuine_server_behind_an_unaltering_proxy_gives_no_false_alarm(
    serve: Callable[..., str], small: PublishedSurvey
):
    with tampering_proxy(serve(), NOTHING, always) as url:
        result = run(link(url, small), "--visits", "6", "--json", "--without-audit")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["differences"] == []


def test_these_tests_notice_a_verification_that_compares_no_headers(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
):
    cookie = next(a for a in all_alterations() if a.name == "page: Set-Cookie added")
    assert simulation.verify(cookie, always, 2)[0] == 1

    def blind(*arguments: object) -> list[Difference]:
        return []

    monkeypatch.setattr(manifests, "compare_headers", blind)
    assert simulation.verify(cookie, always, 2)[0] == 0


def test_these_tests_notice_a_verification_that_compares_no_bytes(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
):
    altered = next(a for a in all_alterations() if a.name == "main.js altered")
    assert simulation.verify(altered, always, 2)[0] == 1
    monkeypatch.setattr(manifests, "sha256", lambda content: AnyHash())
    assert simulation.verify(altered, always, 2)[0] == 0


class AnyHash(str):
    """Equals every other hash."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


OTHER_ONION = "http://aebagbafaydqqcikbmga2dqpcaireeyuculbogazdinryhi6d4qcmeqd.onion"


def test_a_genuine_server_behind_the_shipped_nginx_gives_no_false_alarm(
    start_proxy: Callable[..., Proxy], small: PublishedSurvey, monkeypatch: pytest.MonkeyPatch
):
    # The command finds its name in the system's files.
    proxy = start_proxy((HOST, "localhost"), servers=1, SURVEY_PUBLIC_URL="https://localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.directory / "tls/fullchain.pem"))
    url = f"https://localhost:{proxy.port}"
    options = ("--visits", "3", "--pause", "1", "--without-audit")
    result = run(link(url, small), *options, "--onion", ONION)
    assert result.exit_code == 0, result.output
    # An onion address that nobody has published could lead Tor Browser to another server.
    for unpublished in ((), ("--onion", OTHER_ONION)):
        result = run(link(url, small), *options, *unpublished)
        assert result.exit_code == 1
        assert "header Onion-Location" in result.output


def test_a_missing_header_for_encrypted_connections_is_found(
    start_proxy: Callable[..., Proxy], small: PublishedSurvey, monkeypatch: pytest.MonkeyPatch
):
    hidden = "proxy_http_version 1.1; proxy_hide_header Strict-Transport-Security"
    proxy = start_proxy(
        (HOST, "localhost"),
        ("proxy_http_version 1.1", hidden),
        servers=1,
        SURVEY_PUBLIC_URL="https://localhost",
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.directory / "tls/fullchain.pem"))
    url = f"https://localhost:{proxy.port}"
    result = run(link(url, small), "--visits", "1", "--without-audit")
    assert result.exit_code == 1
    assert "header Strict-Transport-Security missing" in result.output


def test_a_server_with_an_untrusted_certificate_is_not_checked(
    start_proxy: Callable[..., Proxy], small: PublishedSurvey
):
    proxy = start_proxy((HOST, "localhost"), servers=1, SURVEY_PUBLIC_URL="https://localhost")
    result = run(f"https://localhost:{proxy.port}/s/small", "--visits", "1")
    assert result.exit_code == 2
    assert "self-signed certificate" in result.output
