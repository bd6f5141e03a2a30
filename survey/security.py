"""Security headers of all responses, the origin check of reports, and the hash of tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

from survey.errors import CrossSiteError
from survey.settings import host_of

COMMON: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Frame-Options": "DENY",
}

NO_STORE = "no-store"
REVALIDATED = "private, no-cache"
"""Cache-Control of the API: programs may store a response but must ask whether it is current."""

IMMUTABLE = "public, max-age=31536000, immutable"
STRICT_TRANSPORT = "max-age=63072000; includeSubDomains"

API = "/api/"
"""Prefix of the addresses for programs."""


@lru_cache(maxsize=32)
def content_security_policy(
    form_action: str,
    collector: str = "",
    *,
    connect: str = "'self'",
    ancestors: str = "'none'",
    frames: str = "",
    workers: str = "'none'",
) -> str:
    """Return the policy of a page that sends forms to `form_action` and requests to a collector.

    All pages may also send requests to their own server, unless `connect` names another address. No
    other collector is allowed if `collector` is "". `ancestors` may show the page in a frame, and
    the page may show `frames`; "" means none. `workers` are the sources of allowed workers.
    """
    sources = f"{connect} {collector}".rstrip()
    return (
        f"default-src 'none'; script-src 'self'; worker-src {workers}; "
        f"connect-src {sources}; style-src 'self'; "
        f"img-src 'self' data:; {f'frame-src {frames}; ' if frames else ''}"
        f"form-action {form_action}; base-uri 'none'; "
        f"frame-ancestors {ancestors}; require-trusted-types-for 'script'"
    )


PREVIEW_FILES = ("/client/", "/pictures/")
"""The only addresses that scripts of a draft's preview may request: shipped files and pictures."""

Framing = Literal["", "frames", "framed", "isolated"]
"""Whether a page shows a frame, or is shown in one; both from the same origin only.

A researcher uploaded an isolated file: opened by itself, it has no origin and loads nothing.
"""


def framing_headers(framing: Framing, host: str) -> dict[str, str]:
    """Return the headers of pages that show a preview, of the preview, and of isolated files.

    The preview cannot send a report: its scripts can request only the client's files, and it sends
    no forms. It can load images and styles from its own origin.
    """
    if framing == "frames":
        policy = content_security_policy("'self'", frames="'self'")
        return {"Content-Security-Policy": policy}
    if framing == "framed":
        files = " ".join(f"{host}{files}" for files in PREVIEW_FILES)
        policy = content_security_policy("'none'", connect=files, ancestors="'self'")
        return {"Content-Security-Policy": policy, "X-Frame-Options": "SAMEORIGIN"}
    if framing == "isolated":
        return {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return {}


Readers = Literal["link", "figure"]
"""Readers whose pages need other headers: of a secret link, or of a public figure."""


def reader_headers(readers: Readers | None, *, ok: bool) -> dict[str, str]:
    """Return the headers of results that are read without an account.

    Search engines must not list a page with a secret address. Other sites may show a public figure,
    but not the page of an error.
    """
    if readers == "link":
        return {"X-Robots-Tag": "noindex"}
    return {"Cross-Origin-Resource-Policy": "cross-origin"} if readers == "figure" and ok else {}


def respondent_headers(collector: str = "") -> dict[str, dict[str, str]]:
    """Return the headers that a host sends over https.

    There are headers for the respondents' "page", for its "files", and for the page and the worker
    in the folder "field".
    """
    policy = {"Content-Security-Policy": content_security_policy("'none'", collector)}
    field_policy = content_security_policy("'none'", collector, workers="'self'")
    common = {**COMMON, **policy, "Strict-Transport-Security": STRICT_TRANSPORT}
    page = {**common, "Cache-Control": NO_STORE}
    return {
        "page": page,
        "files": {**common, "Cache-Control": IMMUTABLE},
        "field": {**page, "Content-Security-Policy": field_policy},
    }


def headers(
    path: str,
    *,
    https: bool,
    immutable: bool,
    for_respondents: bool = False,
    in_field_mode: bool = False,
    onion_url: str = "",
) -> dict[str, str]:
    """Return the security headers of the response to a request for `path`.

    A host `for_respondents` has one policy for all paths, except that the page of field mode and
    its service worker are `in_field_mode`: no other page may install a worker. With an onion
    address, Tor Browser offers to open the same path there.
    """
    # Only researchers' pages contain forms.
    has_forms = path.startswith(("/research", "/handbook")) and not for_respondents
    form_action = "'self'" if has_forms else "'none'"
    workers = "'self'" if in_field_mode else "'none'"
    values = {
        **COMMON,
        "Content-Security-Policy": content_security_policy(form_action, workers=workers),
        "Cache-Control": IMMUTABLE if immutable else NO_STORE,
    }
    if path.startswith(API):
        values |= {"Cache-Control": REVALIDATED, "Vary": "Accept, Authorization"}
    if https:
        values["Strict-Transport-Security"] = STRICT_TRANSPORT
    if onion_url:
        values["Onion-Location"] = f"{onion_url}{quote(path)}"
    return values


def check_same_origin(
    site: str | None,
    origin: str | None,
    host: str,
    url: str,
    client_origins: Collection[str] = (),
) -> None:
    """Raise CrossSiteError for a request that the page of another site sends.

    Browsers name the sending site in Sec-Fetch-Site and Origin. Requests without these headers
    come from programs and are accepted, and so are those from one of `client_origins`.
    """
    if origin in client_origins:
        return
    # Origins are compared as text, so a malformed one counts as another site. The URL that people
    # open counts as well, because a proxy may change the Host header.
    own_origin = f"{url.partition('://')[0]}://{host_of(url)}"
    allowed = (f"https://{host}", f"http://{host}", own_origin)
    is_foreign = origin is not None and origin not in allowed
    if site not in (None, "same-origin", "none") or is_foreign:
        raise CrossSiteError("reports are accepted from this site's own page only")


def cross_origin_headers(origin: str | None, client_origins: Collection[str]) -> dict[str, str]:
    """Return the headers that allow the page of another listed host to read a response.

    They do not allow credentials, because all pages send reports without cookies.
    """
    if origin not in client_origins or origin is None:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Expose-Headers": "Retry-After",
        "Access-Control-Max-Age": "7200",
    }


def hash_of(token: str) -> bytes:
    """Return the SHA-256 of a token, which is all that the server stores of it.

    Tokens have 256 random bits. At 10^9 guesses a second for the age of the universe, the chance
    to guess one is below 10^-50. So tokens need no salt, no slow hash and no limit on guesses. Rows
    are looked up by the hash, so the time of a lookup reveals nothing about a token.
    """
    return hashlib.sha256(token.encode("utf-8")).digest()
