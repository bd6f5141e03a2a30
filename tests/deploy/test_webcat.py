"""The respondents' host obeys the rules of WEBCAT, so that an operator can enrol it.

Each rule is one that the browser extension checks (freedomofpress/webcat, webcat-spec and
webcat-docs, read in November 2026).
"""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from survey.respond.client import Client
from survey.store import PublishedSurvey
from tests.deploy.headers import by_name
from tests.deploy.proxy import Answer, Proxy
from tests.faults.reports import JSON, new_report

pytestmark = [pytest.mark.web, pytest.mark.security]

CLIENT = Client.load()
CONFIG = CLIENT.webcat_config("https://github.com/ldp-survey/ldp-survey/tree/v1")
FILES = {f"/{path}": hashlib.sha256(content).hexdigest() for path, content in CLIENT.served.items()}
POLICY: str = CONFIG["default_csp"]

FIELD_POLICY: str = CONFIG["extra_csp"]["/field/"]

ALLOWED = {
    **{
        key: {"'none'", "'self'"} for key in ("default-src", "worker-src", "child-src", "frame-src")
    },
    **{key: {"'none'", "'self'"} for key in ("script-src", "script-src-elem")},
    **{key: {"'none'", "'self'"} for key in ("style-src", "style-src-elem")},
    "object-src": {"'none'"},
}
"""The sources that every version of the extension allows; other directives may have any."""

NEEDED_WITHOUT_DEFAULT = ("object-src", "script-src", "style-src", "worker-src", "frame-src")


def policy_faults(policy: str) -> list[str]:
    """Return the directives that the extension rejects."""
    if "," in policy:
        return ["a comma"]
    parts = [part.split() for part in policy.split(";") if part.strip()]
    directives = {part[0].lower(): part[1:] for part in reversed(parts)}
    faults = [
        f"{name} {source}"
        for name, sources in directives.items()
        for source in sources
        if name in ALLOWED and source not in ALLOWED[name]
    ]
    if directives.get("default-src") != ["'none'"]:
        faults += [name for name in NEEDED_WITHOUT_DEFAULT if not directives.get(name)]
    return faults


def header_faults(answer: Answer, policy: str = POLICY) -> list[str]:
    """Return what is wrong with the headers of a response, whatever its status."""
    values = by_name(answer[1])
    faults = [name for name in ("refresh", "link", "location") if name in values]
    if values.get("content-security-policy") != [policy]:
        faults.append(f"policy {values.get('content-security-policy')}")
    return faults


def body_faults(path: str, answer: Answer, *, is_navigation: bool) -> list[str]:
    """Return what is wrong with a body: pages, scripts and styles must be files of the manifest."""
    key = path + CONFIG["default_index"] if path.endswith("/") else path
    if is_navigation and key not in FILES:
        key = CONFIG["default_fallback"]
    return [] if FILES.get(key) == hashlib.sha256(answer[2]).hexdigest() else [f"bytes of {path}"]


def test_the_configuration_has_every_key_and_a_policy_that_the_extension_accepts():
    keys = {"app", "version", "default_csp", "extra_csp", "default_index", "default_fallback"}
    assert set(CONFIG) == {*keys, "wasm"}
    assert re.fullmatch(r"\d+(\.\d+)*", CONFIG["version"])
    assert f"/{CONFIG['default_index']}" in FILES
    assert CONFIG["default_fallback"] in FILES
    assert json.loads(json.dumps(CONFIG)) == CONFIG
    assert policy_faults(POLICY) == []
    assert policy_faults(FIELD_POLICY) == []


def test_the_check_of_policies_can_fail():
    for old, new in (
        ("script-src 'self'", "script-src 'self' 'unsafe-inline'"),
        ("script-src 'self'", "script-src 'self' blob:"),
        ("style-src 'self'", "style-src https://example.org"),
        ("default-src 'none'; ", ""),
        ("default-src 'none'", "default-src 'none' 'self'"),
        ("default-src 'none'", "default-src 'none'; object-src 'self'"),
        ("; ", ", "),
    ):
        assert old in POLICY
        assert policy_faults(POLICY.replace(old, new, 1)), new


def test_every_response_of_the_respondents_host_has_the_one_policy(
    proxy: Proxy, small: PublishedSurvey
):
    html = {"Accept": "text/html"}
    report = new_report(small)
    script = next(path for path in FILES if path.endswith("/main.js"))
    requests = [
        *(("GET", path, None, html, 200) for path in ("/", "/s/small", "/s/none", script)),
        ("GET", "/s/small/definition.json", None, {}, 200),
        ("GET", "/client-manifest.json", None, {}, 200),
        ("GET", "/favicon.ico", None, {}, 200),
        ("GET", "/s/small/sent", None, {}, 204),
        ("POST", "/s/small/reports", report, JSON, 201),
        ("POST", "/s/small/reports", b"{", JSON, 400),
        ("POST", "/s/small/reports", report, {**JSON, "Sec-Fetch-Site": "cross-site"}, 403),
        *(("GET", path, None, html, 404) for path in ("/x", "/s/a/b", "/client/0/main.js")),
        *(("GET", path, None, html, 404) for path in ("/research/", "/api/v1/surveys")),
        ("GET", "/.well-known/webcat/bundle.json", None, {}, 404),
        ("GET", "/s/none/definition.json", None, {}, 404),
        ("PUT", "/s/small/reports", b"", {}, 405),
        ("TRACE", "/s/small", None, {}, 405),
        ("POST", "/s/small/reports", b"x" * 20_000, JSON, 413),
        ("POST", "/s/small/reports", b"{}", {}, 415),
        ("GET", "/s/small", None, {"X-Long": "a" * 40_000}, 400),
    ]
    for method, path, body, headers, status in requests:
        answer = proxy.ask(method, path, body, headers)
        assert answer[0] == status, (method, path, answer[0])
        assert header_faults(answer) == [], (method, path)


def test_the_folder_of_field_mode_has_the_policy_that_the_configuration_states(proxy: Proxy):
    assert list(CONFIG["extra_csp"]) == ["/field/"]
    for path in ("/field/", "/field/index.html", "/field/worker.js"):
        answer = proxy.ask("GET", path)
        assert answer[0] == 200, path
        assert header_faults(answer, FIELD_POLICY) == [], path


def test_every_page_script_and_style_is_a_file_of_the_manifest(proxy: Proxy):
    html = {"Accept": "text/html"}
    for path in ("/", "/s/small", "/s/none", "/s/trial-1", "/x", "/s/a/b", "/field/"):
        answer = proxy.ask("GET", path, headers=html)
        assert body_faults(path, answer, is_navigation=True) == []
    for path in FILES:
        if path != f"/{CONFIG['default_index']}":
            answer = proxy.ask("GET", path)
            assert body_faults(path, answer, is_navigation=False) == []
    assert b"<script>" not in CLIENT.page
    assert b"style=" not in CLIENT.page
    assert not re.search(rb"\son\w+=", CLIENT.page)
