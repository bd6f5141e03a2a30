"""A scanner for web vulnerabilities (wapiti) finds nothing, as a stranger and as a researcher."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from survey.collect.publication import publish
from survey.questionnaire.native import load
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY
from tests.deploy.proxy import Proxy
from tests.web.visits import Visit

pytestmark = [pytest.mark.long, pytest.mark.security]

SECONDS = 120
ATTACK_SECONDS = 15
"""Of each kind of attack."""

WIDER = (
    ("survey.example.org", "localhost"),
    ("rate=50r/s", "rate=5000r/s"),
    ("rate=20r/s", "rate=5000r/s"),
    ("rate=20r/m", "rate=5000r/s"),
)
"""A scan is more requests than any campus sends; the limits have tests of their own."""

OBSOLETE = "X-XSS-Protection is not set"
"""No browser reads it any more, and in old ones it opened holes: it is left out on purpose."""

SIGN_IN = "        # Tries to sign in"
ENDING = "/research/sign-out", "/research/account/sessions/end"
LASTING = (
    SIGN_IN,
    "".join(f"location = {path} {{ return 403; }}\n" for path in ENDING) + SIGN_IN,
)
"""A scanner sends all forms, also those that end its own session: all others would say no more."""

STRANGER = ["/s/small", "/research/sign-in", "/research/methods", "/api/v1/openapi.json"]
RESEARCHER = [
    "/research/",
    "/research/surveys/small/1",
    "/research/surveys/small/collect",
    "/research/surveys/small/explore",
    "/research/account",
]


@pytest.fixture
def scanner() -> str:
    found = shutil.which("wapiti")
    if found is None:
        pytest.skip("no wapiti on the path (apt-get install wapiti)")
    return found


def is_refused(visit: Visit, finding: dict[str, str]) -> bool:
    """Whether a form that is said to go without its token is refused without it, asked again.

    The scanner knows few names of tokens, and does not send one along with a file.
    """
    if "CSRF" not in finding["info"]:
        return False
    if finding["path"] in ENDING:
        return True
    # 409 shows what was typed once more, to be sent with a token of now; nothing is done.
    return visit.post(finding["path"], csrf_token="no").status in (400, 409)


@pytest.mark.parametrize("who", ["stranger", "researcher"])
def test_a_scanner_finds_nothing(
    behind: Callable[..., Proxy], scanner, store, small, researcher, tmp_path: Path, who
):
    add_released(store, small, 100)
    other = SMALL.replace('slug = "small"', 'slug = "other"')
    publish(store, load(other.encode(), "o.toml", Caps()), TODAY)
    proxy = behind(*WIDER, LASTING, SURVEY_PUBLIC_URL="https://localhost")
    base = f"https://localhost:{proxy.port}"
    starts = STRANGER if who == "stranger" else RESEARCHER
    visit = Visit(proxy.connect, "localhost")
    if who == "researcher":
        assert visit.sign_in().status == 302
        # The scanner sends one cookie throughout: it must know what forms are signed with.
        assert visit.get("/research/account").status == 200
    session = ["-H", f"Cookie: {visit.cookie}"] if visit.cookies else []
    found = tmp_path / "found.json"
    command = [
        *(scanner, "-u", base + starts[0], *(f"-s{base}{path}" for path in starts[1:])),
        *("--scope", "domain", "-d", "4", "--max-scan-time", str(SECONDS)),
        *("--max-attack-time", str(ATTACK_SECONDS), "--flush-session"),
        *("-m", "all", "--verify-ssl", "0", "--no-bugreport", "-v", "0", "--store-session"),
        *(str(tmp_path / "session"), "-f", "json", "-o", str(found), *session),
    ]
    subprocess.run(command, capture_output=True, text=True, timeout=2400, check=False)
    report = json.loads(found.read_text())
    said = [
        f"{kind}: {one['method']} {one['path']}: {one['info']}"
        for part in ("vulnerabilities", "anomalies")
        for kind, several in report[part].items()
        for one in several
        if one["info"] != OBSOLETE and not is_refused(visit, one)
    ]
    assert said == []
    # Whatever it sent, the servers are well and nothing was changed.
    assert proxy.ask("GET", "/healthz", headers={"Host": "localhost"})[0] == 200
    assert {survey.slug for survey in store.surveys()} >= {"small", "other"}
