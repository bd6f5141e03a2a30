"""Visitors that a verification imitates, with browsers, languages, codings and cookies."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from typing import Any

_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64"
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"

USER_AGENTS: Mapping[str, str] = {
    "Chrome, Windows": f"{_WINDOWS}) {_WEBKIT} Chrome/142.0.0.0 Safari/537.36",
    "Edge, Windows": f"{_WINDOWS}) {_WEBKIT} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Firefox, Windows": f"{_WINDOWS}; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Tor Browser": f"{_WINDOWS}; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Firefox, Linux": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Chrome, Mac": f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_WEBKIT} "
    "Chrome/142.0.0.0 Safari/537.36",
    "Safari, Mac": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "
    "(KHTML, like Gecko) Version/26.1 Safari/605.1.15",
    "Safari, iPhone": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) "
    "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1",
    "Chrome, Android": f"Mozilla/5.0 (Linux; Android 10; K) {_WEBKIT} "
    "Chrome/142.0.0.0 Mobile Safari/537.36",
    "Samsung Internet, Android": f"Mozilla/5.0 (Linux; Android 10; K) {_WEBKIT} "
    "SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
    "Firefox, Android": "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
}
"""User-Agent of each browser."""

LANGUAGES = (
    *("en-US,en;q=0.9", "en-GB,en;q=0.9", "es-ES,es;q=0.9", "es-MX,es;q=0.9,en;q=0.8"),
    *("pt-BR,pt;q=0.9,en;q=0.8", "ar,en;q=0.8", "de-DE,de;q=0.9,en;q=0.8"),
    *("fr-FR,fr;q=0.9,en;q=0.8", "tr-TR,tr;q=0.9", "pl-PL,pl;q=0.9", "zh-CN,zh;q=0.9"),
)

CODINGS = ("gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate", "identity")

COOKIES = ("", "visited=1; theme=dark")
"""No cookies, or cookies such as a browser may still have from another page of the host."""


@dataclass(frozen=True)
class Visitor:
    """The properties by which a server can distinguish a visitor, apart from the address."""

    browser: str
    language: str
    coding: str
    cookie: str
    returning: bool
    """Whether the visitor loads the page once more at the end of the visit."""

    def headers(
        self, kind: str, site: str = "same-origin", origin: str = "", *, is_cached: bool = True
    ) -> dict[str, str]:
        """Return the headers of a request for a "document", "script", "style" and so on.

        `is_cached`: the browser may answer from its cache.
        """
        agent = USER_AGENTS[self.browser]
        accept = {"document": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
        mode = {"document": "navigate", "style": "no-cors", "serviceworker": "same-origin"}
        headers = {
            **_client_hints(agent),
            "User-Agent": agent,
            "Accept": accept.get(kind, "text/css,*/*;q=0.1" if kind == "style" else "*/*"),
            "Accept-Language": self.language,
            "Accept-Encoding": self.coding,
            "Sec-Fetch-Dest": kind,
            "Sec-Fetch-Mode": mode.get(kind, "cors"),
            "Sec-Fetch-Site": site,
        }
        if kind == "document":
            headers |= {"Upgrade-Insecure-Requests": "1", "Sec-Fetch-User": "?1"}
        if kind == "serviceworker":
            headers |= {"Service-Worker": "script", "Cache-Control": "max-age=0"}
        if not is_cached:
            headers |= {"Cache-Control": "no-cache", "Pragma": "no-cache"}
        if origin:
            headers["Origin"] = origin
        # The client requests definitions and interface texts without cookies.
        if self.cookie and kind != "empty":
            headers["Cookie"] = self.cookie
        return headers

    def properties(self) -> dict[str, str]:
        """Return the properties in words.

        >>> Visitor("Tor Browser", "ar", "gzip", "", True).properties()["returning"]
        'yes'
        """
        words = {True: "yes", False: "no", "": "none"}
        return {name: words.get(value, str(value)) for name, value in asdict(self).items()}


def _client_hints(agent: str) -> dict[str, str]:
    if "Chrome/" not in agent:
        return {}
    chromium = agent.partition("Chrome/")[2].partition(".")[0]
    brand, version = "Google Chrome", chromium
    if "Edg/" in agent:
        brand = "Microsoft Edge"
    elif "SamsungBrowser/" in agent:
        brand, version = "Samsung Internet", agent.partition("SamsungBrowser/")[2].partition(" ")[0]
    systems = {"Windows": "Windows", "Android": "Android", "Macintosh": "macOS"}
    system = next(name for part, name in systems.items() if part in agent)
    return {
        "Sec-CH-UA": f'"Chromium";v="{chromium}", "{brand}";v="{version}", "Not_A Brand";v="99"',
        "Sec-CH-UA-Mobile": "?1" if "Mobile" in agent else "?0",
        "Sec-CH-UA-Platform": f'"{system}"',
    }


CHROMIUM = tuple(name for name, agent in USER_AGENTS.items() if "Chrome/" in agent)
"""The browsers that a real Chromium can imitate."""


def choose_visitors(
    n: int, rng: random.Random, browsers: Sequence[str] = tuple(USER_AGENTS)
) -> list[Visitor]:
    """Return n visitors in random order; the values of each property are equally frequent.

    With 66 visitors, every browser, language, coding and cookie occurs six times or more.
    """
    choices: list[Sequence[Any]] = [
        *(browsers, LANGUAGES, CODINGS, COOKIES),
        (False, True),
    ]
    columns = [_balanced(values, n, rng) for values in choices]
    names = [field.name for field in fields(Visitor)]
    return [Visitor(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _balanced(values: Sequence[Any], n: int, rng: random.Random) -> list[Any]:
    def rounds() -> Any:
        while True:
            yield from rng.sample(values, len(values))

    return list(islice(rounds(), n))
