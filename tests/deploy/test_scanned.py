"""A scanner for web vulnerabilities (wapiti) finds nothing, as a visitor and as a researcher.

Each test also shows that the scanner reached the pages and that it can find a vulnerability.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from survey.collect.publication import publish
from survey.questionnaire.loading import load
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.deploy.scanner import Finding, LoggedRequest, logged_requests, request_log, scan
from tests.deploy.stub_server import stub_server
from tests.web.clients import SIGN_IN, WebClient

pytestmark = pytest.mark.security

HIGH_LIMITS = (
    ("survey.example.org", "localhost"),
    ("rate=50r/s", "rate=5000r/s"),
    ("rate=20r/s", "rate=5000r/s"),
    ("rate=20r/m", "rate=5000r/s"),
)
"""A scan sends more requests than any campus; other tests cover the limits."""

OBSOLETE_HEADER = "X-XSS-Protection is not set"
"""Browsers no longer use this header, and it made old ones vulnerable: it is omitted on purpose."""

BEFORE_SIGN_IN = "        # Sign-in attempts"
SESSION_END = "/research/sign-out", "/research/account/sessions/end"
KEEP_SESSION = (
    BEFORE_SIGN_IN,
    "".join(f"location = {path} {{ return 403; }}\n" for path in SESSION_END) + BEFORE_SIGN_IN,
)
"""A scanner submits every form; ending its own session would make the rest of the scan void."""

VISITOR = ["/s/small", SIGN_IN, "/api/v1/openapi.json"]
RESEARCHER = [
    "/research/",
    "/research/surveys/small/1",
    "/research/surveys/small/collect",
    "/research/surveys/small/explore",
    "/research/account",
    "/research/methods",
]
STARTS = {"visitor": VISITOR, "researcher": RESEARCHER}

FORMS = {"visitor": {SIGN_IN}, "researcher": {"/research/surveys/small/collect/invite"}}
"""Forms that the scanner must have submitted."""


def is_false_alarm(visit: WebClient, finding: Finding) -> bool:
    """Tell whether the form of a CSRF finding is in fact rejected without its token.

    The scanner knows few names of tokens and omits the token when it uploads a file.
    """
    if "CSRF" not in finding.info:
        return False
    if finding.path in SESSION_END:
        return True
    # 409 shows the input again, to be submitted with a current token; it changes nothing.
    return visit.post(finding.path, csrf_token="no").status in (400, 409)


def check_coverage(
    log: list[LoggedRequest], paths: list[str], forms: set[str], minimum: int
) -> None:
    """Check that the scanner read the pages, submitted the forms and was not blocked."""
    assert set(paths) <= {request.path for request in log if request.status == 200}
    posts = Counter(request.path for request in log if request.method == "POST")
    assert all(posts[form] >= 5 for form in forms), posts
    statuses = Counter(request.status for request in log)
    assert statuses.keys().isdisjoint({429, 502, 503, 504}), statuses
    assert len({(request.method, request.path, request.query) for request in log}) >= minimum


@pytest.mark.long
@pytest.mark.parametrize("role", STARTS)
def test_a_scanner_finds_nothing(
    start_proxy: Callable[..., Proxy], store, small, researcher, tmp_path: Path, role
):
    add_released(store, small, 100)
    other = SMALL.replace('slug = "small"', 'slug = "other"')
    publish(store, load(other.encode(), "o.toml", Caps()), TODAY)
    log = tmp_path / "requests.log"
    proxy = start_proxy(
        *HIGH_LIMITS, KEEP_SESSION, request_log(log), SURVEY_PUBLIC_URL="https://localhost"
    )
    visit = WebClient(proxy.connect, "localhost")
    if role == "researcher":
        assert visit.sign_in().status == 302
        # The scanner always sends the same cookie, so it needs the one that signs forms.
        assert visit.get("/research/account").status == 200
    session = ["-H", f"Cookie: {visit.cookie}"] if visit.cookies else []
    base = f"https://localhost:{proxy.port}"
    before = len(logged_requests(log))
    findings = scan(base, STARTS[role], tmp_path, *session, seconds=120, attack_seconds=15)
    requests = logged_requests(log)[before:]
    assert [
        finding
        for finding in findings
        if finding.info != OBSOLETE_HEADER and not is_false_alarm(visit, finding)
    ] == []
    check_coverage(requests, STARTS[role], FORMS[role], minimum=500)
    # After the scan, the session is valid, the servers work and the surveys exist.
    if role == "researcher":
        assert visit.get("/research/").status == 200
    assert proxy.ask("GET", "/healthz", headers={"Host": "localhost"})[0] == 200
    assert {survey.slug for survey in store.surveys()} >= {"small", "other"}


SHORT = {"modules": "xss,http_headers,cookieflags,csp", "seconds": 60, "attack_seconds": 60}


@pytest.mark.web
def test_a_short_scan_of_the_sign_in_form_finds_nothing(start_proxy, small, researcher, tmp_path):
    log = request_log(tmp_path / "requests.log")
    proxy = start_proxy(*HIGH_LIMITS, log, servers=1, SURVEY_PUBLIC_URL="https://localhost")
    findings = scan(f"https://localhost:{proxy.port}", [SIGN_IN], tmp_path, **SHORT)
    assert [finding for finding in findings if finding.info != OBSOLETE_HEADER] == []
    check_coverage(logged_requests(tmp_path / "requests.log"), [SIGN_IN], {SIGN_IN}, minimum=4)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(SHORT, marks=pytest.mark.web),
        pytest.param({"seconds": 120, "attack_seconds": 15}, marks=pytest.mark.long),
    ],
)
def test_the_scanner_finds_a_planted_vulnerability(tmp_path, options):
    with stub_server(b"", echoes=True) as server:
        findings = scan(f"http://localhost:{server.server_port}", ["/"], tmp_path, **options)
    assert ("Cross Site Scripting", "GET", "/") in {finding[:3] for finding in findings}
    assert any(
        "Content-Security-Policy" in finding.info or "CSP" in finding.info for finding in findings
    )
