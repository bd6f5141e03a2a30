"""Hosts of an instance and the routes that each of them serves.

With one address, every host serves all routes. SURVEY_RESEARCH_URL separates two origins: the
public host serves respondents, the other one researchers and programs, so that a vulnerability in
the researchers' pages does not affect respondents. The onion service serves only respondents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import cache

from werkzeug.routing import BaseConverter, Map

from survey.questionnaire import TEST_RUN_PREFIX
from survey.settings import Settings, host_of


class Host(Enum):
    """A kind of host, named after the people it serves."""

    SHARED = auto()
    """Any host of an instance with one address."""
    RESPONDENTS = auto()
    RESEARCHERS = auto()
    UNKNOWN = auto()
    """A host name that is not an address of an instance with two origins."""


_RESPONDENTS = frozenset({Host.RESPONDENTS})
_RESEARCHERS = frozenset({Host.RESEARCHERS})
_BOTH = _RESPONDENTS | _RESEARCHERS

HOSTS: Mapping[str, frozenset[Host]] = {
    "respond": _RESPONDENTS,
    # Researchers open test runs (`SLUGS`).
    **dict.fromkeys(("respond.page", "respond.definition", "respond.reports"), _BOTH),
    **dict.fromkeys(("respond.sent", "respond.client_file", "respond.favicon"), _BOTH),
    # Previews of drafts show pictures on the researchers' host.
    "respond.picture": _BOTH,
    **dict.fromkeys(("accounts", "account", "tokens", "team", "people"), _RESEARCHERS),
    **dict.fromkeys(("research", "drafts", "collection", "lifecycle", "versions"), _RESEARCHERS),
    **dict.fromkeys(("share", "readers", "looks", "questionnaires"), _RESEARCHERS),
    **dict.fromkeys(("results", "microdata", "reports", "handbook", "api"), _RESEARCHERS),
    "home": _BOTH,
    # Load balancers and the server itself use an internal address.
    "healthz": _BOTH | {Host.UNKNOWN},
}
"""Hosts that serve each endpoint or blueprint; a shared host serves all of them.

With two origins, no host serves an endpoint that is missing here.
"""


class SlugOfSurvey(BaseConverter):
    """The short name of a survey that is not a test run, in an address."""

    regex = f"(?!{TEST_RUN_PREFIX})[^/]+"
    part_isolating = True


class SlugOfTestRun(BaseConverter):
    """The short name of a test run, in an address."""

    regex = f"{TEST_RUN_PREFIX}[^/]+"
    part_isolating = True


SLUGS: Mapping[Host, type[BaseConverter]] = {
    Host.SHARED: BaseConverter,
    Host.RESPONDENTS: SlugOfSurvey,
    Host.RESEARCHERS: SlugOfTestRun,
    Host.UNKNOWN: BaseConverter,
}
"""Converter of each kind of host; it matches the short names of surveys that the host serves."""


def hosts_of(endpoint: str) -> frozenset[Host]:
    """Return the hosts that serve an endpoint."""
    return HOSTS.get(endpoint, HOSTS.get(endpoint.partition(".")[0], frozenset()))


class Hosts:
    """The hosts of an instance, and the routes of each; `routes` are those of the application."""

    def __init__(self, settings: Settings, routes: Map) -> None:
        self._settings = settings
        self._all_routes = routes
        self._kinds: dict[str, Host] = {}
        if settings.research_url:
            self._kinds[host_of(settings.research_url)] = Host.RESEARCHERS
            self._kinds[host_of(settings.public_url)] = Host.RESPONDENTS
        if settings.onion_url:
            self._kinds[host_of(settings.onion_url)] = Host.RESPONDENTS
        self._other = Host.UNKNOWN if settings.research_url else Host.SHARED
        self.routes = cache(self._routes)

    def kind(self, host: str) -> Host:
        """Return the kind of the host that a request names, with or without a port."""
        return self._kinds.get(host.lower(), self._other)

    def serves_reports(self, host: str, slug: str) -> bool:
        """Return whether a host accepts reports for a survey, if there is one with this slug."""
        kind = self.kind(host)
        is_served = kind is Host.SHARED or kind in hosts_of("respond.reports")
        return is_served and re.fullmatch(SLUGS[kind].regex, slug) is not None

    def _routes(self, kind: Host) -> Map:
        """Return the routes that a kind of host serves."""
        if kind is Host.SHARED:
            return self._all_routes
        # Merging slashes would answer with a redirect, whose bytes are no published ones.
        routes = Map(merge_slashes=False)
        routes.converters["survey"] = SLUGS[kind]
        for rule in self._all_routes.iter_rules():
            if kind in hosts_of(rule.endpoint):
                copy = rule.empty()
                copy.merge_slashes = False
                # Flask sets this attribute after it creates the rule, so `empty` does not copy it.
                copy.provide_automatic_options = rule.provide_automatic_options  # type: ignore[attr-defined]
                routes.add(copy)
        return routes

    def is_https(self, host: str) -> bool:
        """Return whether the address of a host starts with https."""
        if self._is_onion(host):
            return False
        is_research = self.kind(host) is Host.RESEARCHERS
        url = self._settings.researchers_url if is_research else self._settings.public_url
        return url.startswith("https://")

    def onion_url(self, host: str, path: str) -> str:
        """Return the onion address if it also serves a path of a host, otherwise ""."""
        if not self._settings.onion_url or self._is_onion(host):
            return ""
        has_path = self.routes(Host.RESPONDENTS).bind("").test(path, "GET")
        is_public = self.kind(host) in (Host.SHARED, Host.RESPONDENTS) and has_path
        return self._settings.onion_url.rstrip("/") if is_public else ""

    def _is_onion(self, host: str) -> bool:
        onion_url = self._settings.onion_url
        return bool(onion_url) and host.lower() == host_of(onion_url)
