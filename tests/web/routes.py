"""Build a valid address for every route of the application."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Flask
from werkzeug.routing import Rule

from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.loading import source_of
from survey.respond import Client
from survey.results.accents import accent_stylesheet
from survey.security import hash_of
from survey.store import ColleagueLink, PublishedSurvey, ResultLink, Role, Store, TeamLook
from tests.conftest import ROOT
from tests.pictures import add_picture
from tests.results.populations import add_people, shares_by_first_answer

DIFFERENCE = {"question": "fell_asleep", "a": "link:north", "b": "link:south"}
WEIGHTING = {
    "question": "fell_asleep",
    "by": "link",
    "margins": "north,20%\nsouth,60\neast,10\nwest,10",
}
REGRESSION = {"question": "fell_asleep", "predictor": "pressure"}
TREND = {"question": "fell_asleep"}
TREND_ENDPOINTS = (
    *("results.links", "results.trend", "results.versions"),
    *("results.trend_csv", "results.trend_figure"),
    *("results.small_groups_csv", "results.small_groups_chart", "results.small_groups_figure"),
)
CROSSTAB = {"first": "fell_asleep", "second": "pressure"}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(TREND_ENDPOINTS, TREND),
    **dict.fromkeys(
        (
            *("results.crosstab", "results.crosstab_csv", "results.crosstab_xlsx"),
            "results.explore",
        ),
        CROSSTAB,
    ),
    "api.crosstab": CROSSTAB,
    "api.crosstab_xlsx": CROSSTAB,
    **dict.fromkeys(
        ("results.difference", "results.difference_csv", "results.difference_figure"), DIFFERENCE
    ),
    **dict.fromkeys(
        ("results.weighting", "results.weighting_upload", "results.weighting_csv"), WEIGHTING
    ),
    **dict.fromkeys(
        ("results.regression", "results.regression_csv", "results.regression_figure"), REGRESSION
    ),
    "drafts.tradeoff": {"options": "3", "epsilon": "1", "n": "1000"},
}
"""Query parameters by endpoint or by blueprint."""

FILES = {
    "research.asset": "survey/static/research.css",
    "research.chart_script": "survey/static/charts.js",
    "research.contents_script": "survey/static/contents.js",
    "research.progress_script": "survey/static/progress.js",
    "reports.stylesheet": "survey/static/report.css",
    "drafts.script": "survey/static/builder.js",
    "drafts.preview_script": "survey/static/preview.js",
    "drafts.outline_script": "survey/static/outline.js",
    "drafts.shortcuts_script": "survey/static/shortcuts.js",
    "share.script": "survey/static/share.js",
}
"""Files whose address contains their hash."""

ACCENT = "#6b2bda"
LOOK = TeamLook("Institute", ACCENT, b"\x89PNG\r\n\x1a\n")


PICTURE = b"picture"

RESULT_TOKEN = "r" * 43
"""The token of the link to results: the Share page lists the same link in every reading."""


def add_links(store: Store, survey: PublishedSurvey) -> None:
    """Add released reports of four groups, enough for every page to show estimates."""
    add_people(store, survey, 2500, "north", shares_by_first_answer(0.5), 1)
    add_people(store, survey, 2000, "south", shares_by_first_answer(0.2), 2)
    add_people(store, survey, 100, "east", shares_by_first_answer(0.3), 3)
    add_people(store, survey, 100, "west", shares_by_first_answer(0.4), 4)


def is_of_a_draft(rule: Rule) -> bool:
    """Tell whether a route's slug names a draft and not a survey."""
    of_drafts = rule.endpoint.startswith("drafts.") and rule.endpoint != "drafts.from_survey"
    return of_drafts and "slug" in rule.arguments


class Routes:
    """Build addresses for the small survey; create drafts and links as a given researcher."""

    def __init__(self, app: Flask, store: Store, survey: PublishedSurvey, email: str) -> None:
        self._addresses = app.url_map.bind("localhost")
        self._store, self._survey = store, survey
        researcher = store.researcher(email)
        assert researcher
        self._maker, self._member = researcher, researcher.key
        for member in store.members(survey.slug)[:1]:
            self._member = member.researcher

    def draft(self, team: Mapping[int, Role]) -> str:
        """Create a draft of the survey in two languages and return its slug."""
        content = replace(draft_from(source_of(self._survey.definition)), languages=("es",))
        return self._store.add_draft(content.to_json(), self._maker.email, 1, team).slug

    def picture(self) -> str:
        """Store a picture with a draft and return its hash."""
        sha256 = hashlib.sha256(PICTURE).hexdigest()
        return sha256 if self._store.picture(sha256) else add_picture(self._store, PICTURE)

    def link(self) -> str:
        """Create an invitation for a colleague and return its token."""
        token, expires = secrets.token_urlsafe(32), int(time.time()) + 3600
        link = ColleagueLink("", "viewer", expires, self._maker.key)
        self._store.add_colleague_link(hash_of(token), link)
        return token

    def result_link(self, token: str = "") -> str:
        """Return the token of a link to the survey's results; create the link if necessary."""
        token, now = token or secrets.token_urlsafe(32), int(time.time())
        if self._store.slug_of_result_link(hash_of(token), now) is None:
            link = ResultLink(self._survey.slug, token[:8], now + 3600, self._maker.key)
            self._store.add_result_link(hash_of(token), link, now)
        return token

    def address(self, rule: Rule, team: Mapping[int, Role] | None = None) -> str:
        """Return the address of a route; create the draft or link that the route requires."""
        expected = rule.arguments
        values: dict[str, Any] = {
            "slug": self._survey.slug,
            "key": {"drafts.question": 2, "drafts.pictures": 6}.get(rule.endpoint, 1),
            "language": "es",
            "version": self._version(rule.endpoint),
            "researcher": self._member,
            "question": "fell_asleep",
            "part": "shares",
            "kind": "svg",
            "over": "links",
            "look": "light",
            "name": {
                "handbook.page": "reference/settings",
                "drafts.application": "ethics",
                "reports.application": "data-protection",
            }.get(rule.endpoint, "main.js"),
            "accent": ACCENT[1:],
            "number": 1,
            "size": "a4",
            "form": "surveyjs",
        }
        if "sha256" in expected:
            values["sha256"] = self.picture()
        if is_of_a_draft(rule):
            values["slug"] = self.draft(team or {self._maker.key: "owner"})
        if "token" in expected:
            is_shared = rule.endpoint == "readers.link"
            values["token"] = self.result_link(RESULT_TOKEN) if is_shared else self.link()
        elif rule.endpoint.startswith("readers."):
            self._store.set_public_results(self._survey.slug, public=True)
        requested = PARAMETERS.get(
            rule.endpoint, PARAMETERS.get(rule.endpoint.partition(".")[0], {})
        )
        filled = {name: values[name] for name in expected} | dict(requested)
        return self._addresses.build(rule.endpoint, filled)

    def _version(self, endpoint: str) -> int | str:
        if endpoint in FILES:
            return hashlib.sha256((ROOT / FILES[endpoint]).read_bytes()).hexdigest()
        if endpoint.startswith("looks."):
            self._store.set_team_look(self._survey.slug, LOOK)
            content = LOOK.logo if endpoint == "looks.logo" else accent_stylesheet(ACCENT).encode()
            return hashlib.sha256(content).hexdigest()
        return Client.load().sha256 if endpoint == "respond.client_file" else 1
