"""A scanner for web vulnerabilities (wapiti) finds nothing, as a stranger and as a researcher.

That it can find something, and that it came everywhere, is shown each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from survey.collect.publication import publish
from survey.questionnaire.native import load
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.deploy.scanning import Asked, Finding, asked, noting, scan
from tests.deploy.stand_in import standing_in
from tests.web.visits import SIGN_IN, Visit

pytestmark = pytest.mark.security

WIDER = (
    ("survey.example.org", "localhost"),
    ("rate=50r/s", "rate=5000r/s"),
    ("rate=20r/s", "rate=5000r/s"),
    ("rate=20r/m", "rate=5000r/s"),
)
"""A scan is more requests than any campus sends; the limits have tests of their own."""

OBSOLETE = "X-XSS-Protection is not set"
"""No browser reads it any more, and in old ones it opened holes: it is left out on purpose."""

BEFORE_SIGN_IN = "        # Tries to sign in"
ENDING = "/research/sign-out", "/research/account/sessions/end"
LASTING = (
    BEFORE_SIGN_IN,
    "".join(f"location = {path} {{ return 403; }}\n" for path in ENDING) + BEFORE_SIGN_IN,
)
"""A scanner sends all forms, also those that end its own session: all others would say no more."""

STRANGER = ["/s/small", SIGN_IN, "/api/v1/openapi.json"]
RESEARCHER = [
    "/research/",
    "/research/surveys/small/1",
    "/research/surveys/small/collect",
    "/research/surveys/small/explore",
    "/research/account",
    "/research/methods",
]
STARTS = {"stranger": STRANGER, "researcher": RESEARCHER}

FORMS = {"stranger": {SIGN_IN}, "researcher": {"/research/surveys/small/collect/invite"}}
"""Some that it must have sent."""


def is_refused(visit: Visit, finding: Finding) -> bool:
    """Whether a form that is said to go without its token is refused without it, asked again.

    The scanner knows few names of tokens, and does not send one along with a file.
    """
    if "CSRF" not in finding.info:
        return False
    if finding.path in ENDING:
        return True
    # 409 shows what was typed once more, to be sent with a token of now; nothing is done.
    return visit.post(finding.path, csrf_token="no").status in (400, 409)


def check_it_came(log: list[Asked], paths: list[str], forms: set[str], least: int) -> None:
    """It read these pages, sent these forms changed in several ways, and was not sent away."""
    assert set(paths) <= {one.path for one in log if one.status == 200}
    sent = Counter(one.path for one in log if one.method == "POST")
    assert all(sent[form] >= 5 for form in forms), sent
    statuses = Counter(one.status for one in log)
    assert statuses.keys().isdisjoint({429, 502, 503, 504}), statuses
    assert len({(one.method, one.path, one.query) for one in log}) >= least


@pytest.mark.long
@pytest.mark.parametrize("who", STARTS)
def test_a_scanner_finds_nothing(
    behind: Callable[..., Proxy], store, small, researcher, tmp_path: Path, who
):
    add_released(store, small, 100)
    other = SMALL.replace('slug = "small"', 'slug = "other"')
    publish(store, load(other.encode(), "o.toml", Caps()), TODAY)
    log = tmp_path / "asked.log"
    proxy = behind(*WIDER, LASTING, noting(log), SURVEY_PUBLIC_URL="https://localhost")
    visit = Visit(proxy.connect, "localhost")
    if who == "researcher":
        assert visit.sign_in().status == 302
        # The scanner sends one cookie throughout: it must know what forms are signed with.
        assert visit.get("/research/account").status == 200
    session = ["-H", f"Cookie: {visit.cookie}"] if visit.cookies else []
    base = f"https://localhost:{proxy.port}"
    ours = len(asked(log))
    found = scan(base, STARTS[who], tmp_path, *session, seconds=120, attack_seconds=15)
    came = asked(log)[ours:]
    assert [one for one in found if one.info != OBSOLETE and not is_refused(visit, one)] == []
    check_it_came(came, STARTS[who], FORMS[who], least=500)
    # Whatever it sent, its session lasted, the servers are well and nothing was changed.
    if who == "researcher":
        assert visit.get("/research/").status == 200
    assert proxy.ask("GET", "/healthz", headers={"Host": "localhost"})[0] == 200
    assert {survey.slug for survey in store.surveys()} >= {"small", "other"}


SHORT = {"modules": "xss,http_headers,cookieflags,csp", "seconds": 60, "attack_seconds": 60}


@pytest.mark.web
def test_a_short_scan_of_the_form_to_sign_in_finds_nothing(behind, small, researcher, tmp_path):
    log = noting(tmp_path / "asked.log")
    proxy = behind(*WIDER, log, servers=1, SURVEY_PUBLIC_URL="https://localhost")
    found = scan(f"https://localhost:{proxy.port}", [SIGN_IN], tmp_path, **SHORT)
    assert [one for one in found if one.info != OBSOLETE] == []
    check_it_came(asked(tmp_path / "asked.log"), [SIGN_IN], {SIGN_IN}, least=4)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(SHORT, marks=pytest.mark.web),
        pytest.param({"seconds": 120, "attack_seconds": 15}, marks=pytest.mark.long),
    ],
)
def test_the_scanner_finds_a_planted_hole(tmp_path, options):
    with standing_in(b"", says_back=True) as server:
        found = scan(f"http://localhost:{server.server_port}", ["/"], tmp_path, **options)
    assert ("Cross Site Scripting", "GET", "/") in {one[:3] for one in found}
    assert any("Content-Security-Policy" in one.info or "CSP" in one.info for one in found)
