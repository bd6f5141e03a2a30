"""Access to researchers' pages: every route, method and role."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.conftest import EMAIL
from tests.web.researchers import PEOPLE, ROLES, People, token
from tests.web.routes import Routes, add_links

pytestmark = pytest.mark.security

MINIMUM_ROLES = {
    "research.asset": "anybody",
    "research.chart_script": "anybody",
    "research.contents_script": "anybody",
    "research.progress_script": "anybody",
    "accounts.sign_in": "anybody",
    "accounts.authentication_code": "anybody",
    "accounts.join": "anybody",
    "accounts.sign_out": "researcher",
    "account.overview": "researcher",
    "account.password": "researcher",
    "account.add_two_factor": "researcher",
    "account.remove_two_factor": "researcher",
    "account.end_session": "researcher",
    "tokens.overview": "researcher",
    "tokens.revoke": "researcher",
    "research.surveys": "researcher",
    "research.publish": "researcher",
    "results.newest": "viewer",
    "results.dashboard": "viewer",
    "results.estimates_csv": "viewer",
    "results.estimates_xlsx": "viewer",
    "results.estimates_figure": "viewer",
    "microdata.page": "editor",
    "microdata.download": "editor",
    "questionnaires.downloads": "viewer",
    "questionnaires.file": "viewer",
    "reports.stylesheet": "anybody",
    "reports.methods": "researcher",
    "reports.survey_methods": "viewer",
    "reports.report": "viewer",
    "reports.application": "viewer",
    "drafts.application": "viewer",
    "reports.report_pdf": "viewer",
    "results.question": "viewer",
    "results.small_groups_csv": "viewer",
    "results.small_groups_chart": "viewer",
    "results.small_groups_figure": "viewer",
    "results.links": "viewer",
    "results.trend": "viewer",
    "results.versions": "viewer",
    "results.add_note": "editor",
    "results.delete_note": "editor",
    "results.trend_csv": "viewer",
    "results.trend_figure": "viewer",
    "results.crosstab": "viewer",
    "results.explore": "viewer",
    "results.crosstab_csv": "viewer",
    "results.difference": "viewer",
    "results.difference_csv": "viewer",
    "results.difference_figure": "viewer",
    "results.weighting": "viewer",
    "results.weighting_upload": "viewer",
    "results.weighting_csv": "viewer",
    "results.regression": "viewer",
    "results.regression_csv": "viewer",
    "results.regression_figure": "viewer",
    "results.crosstab_xlsx": "viewer",
    "versions.changes": "viewer",
    "collection.overview": "editor",
    "collection.invite": "editor",
    "collection.schedule": "editor",
    "collection.import_tablet": "editor",
    "collection.close": "owner",
    "share.script": "anybody",
    "share.page": "editor",
    "share.qr_code": "editor",
    "share.poster": "editor",
    "share.create_link": "owner",
    "share.revoke_link": "owner",
    "share.set_public": "owner",
    "share.set_email": "editor",
    "share.add_webhook": "owner",
    "share.remove_webhook": "owner",
    "readers.link": "anybody",
    "readers.public": "anybody",
    "readers.figure": "anybody",
    "team.members": "owner",
    "team.invite": "owner",
    "team.revoke_link": "owner",
    "team.change_role": "owner",
    "team.log": "owner",
    "team.change_look": "owner",
    "looks.stylesheet": "anybody",
    "looks.logo": "anybody",
    "drafts.script": "anybody",
    "drafts.preview_script": "anybody",
    "drafts.outline_script": "anybody",
    "drafts.shortcuts_script": "anybody",
    "drafts.bank": "editor",
    "drafts.preview": "viewer",
    "drafts.preview_page": "viewer",
    "drafts.new": "researcher",
    "drafts.from_file": "researcher",
    "drafts.downloads": "viewer",
    "drafts.file": "viewer",
    "drafts.from_survey": "editor",
    "drafts.outline": "viewer",
    "drafts.edit": "editor",
    "drafts.page": "editor",
    "drafts.write_questions": "editor",
    "drafts.delete": "owner",
    "drafts.question": "editor",
    "drafts.pictures": "editor",
    "drafts.texts": "editor",
    "drafts.plan": "editor",
    "drafts.languages": "editor",
    "drafts.translation": "editor",
    "drafts.remove_language": "editor",
    "drafts.tradeoff": "viewer",
    "drafts.design": "viewer",
    "drafts.test_run": "editor",
    "drafts.make_test_run": "editor",
    "drafts.add_test_responses": "editor",
    "drafts.comments": "viewer",
    "drafts.add_comment": "viewer",
    "drafts.change_comment": "viewer",
    "drafts.publish": "editor",
    "drafts.changes": "viewer",
    "lifecycle.archive": "owner",
    "lifecycle.delete": "owner",
    "people.researchers": "admin",
    "people.invite": "admin",
    "people.revoke_link": "admin",
    "people.two_factor": "admin",
    "accounts.provider": "anybody",
    "accounts.provider_return": "anybody",
    "people.log": "admin",
}
"""Minimum role for each endpoint.

The table repeats the application's rules on purpose, so that each change is made twice.
"""

REDIRECTING = {
    *("accounts.authentication_code", "accounts.sign_out"),
    *("accounts.provider", "accounts.provider_return"),
}
"""Endpoints that redirect everyone to the sign-in page: no client has passed only the first step,
signing out ends at that page, and the server has no OpenID Connect provider."""

OPEN_STATUSES = {200, 302, 409, 422}
"""Statuses that show access: a page, a redirect, a conflict or a form with errors."""


@pytest.fixture
def people(app, store, researcher, small):
    add_links(store, small)
    return People(app, store)


def outcome(answer) -> str:
    """Describe the access that a response grants."""
    if answer.status_code == 401 or urlsplit(answer.location or "").path == "/research/sign-in":
        return "asked to sign in"
    if answer.status_code in OPEN_STATUSES:
        return "open"
    return {403: "refused", 404: "not there"}.get(answer.status_code, answer.status)


def expected_outcome(endpoint: str, person: str) -> str:
    """Return the outcome that the table requires for a person."""
    minimum = MINIMUM_ROLES[endpoint]
    if endpoint in REDIRECTING:
        return "asked to sign in"
    if minimum == "anybody":
        return "open"
    if person == "anonymous":
        return "asked to sign in"
    if minimum == "researcher" or person == "admin":
        return "open"
    if minimum == "admin" or person == "stranger":
        return "not there"
    return "open" if ROLES.index(person) >= ROLES.index(minimum) else "refused"


def test_object_access_of_every_researchers_page_is_in_the_table(app):
    rules = app.url_map.iter_rules()
    assert {rule.endpoint for rule in rules if rule.rule.startswith("/research")} == set(
        MINIMUM_ROLES
    )


@pytest.mark.web
@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("method", ["GET", pytest.param("HEAD", marks=pytest.mark.web), "POST"])
def test_object_access_every_page_opens_only_for_the_roles_in_the_table(
    app, store, small, people, person, method
):
    routes, mismatches = Routes(app, store, small, EMAIL), []
    page = "/research/sign-in" if person == "anonymous" else "/research/account"
    for rule in app.url_map.iter_rules():
        if rule.endpoint not in MINIMUM_ROLES or method not in rule.methods:
            continue
        client = people[person]
        data = {"csrf_token": token(client.get(page))} if method == "POST" else {}
        response = client.open(routes.address(rule, people.team), method=method, data=data)
        actual, expected = outcome(response), expected_outcome(rule.endpoint, person)
        if actual != expected:
            mismatches.append((rule.endpoint, actual, expected))
        if rule.endpoint == "accounts.sign_out":
            people.pop(person)
    assert mismatches == []
