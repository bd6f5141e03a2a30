"""Headers of every answer as data, the check of a report's origin, and what is kept of a token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from survey.errors import CrossSiteError

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
"""Of what a program reads: it may keep it, and asks each time whether it is still right."""

IMMUTABLE = "public, max-age=31536000, immutable"
STRICT_TRANSPORT = "max-age=63072000; includeSubDomains"


API = "/api/"
"""How the addresses begin that programs read from."""


def content_security_policy(form_action: str) -> str:
    """The policy of all pages; only researchers' pages may send a form, and to us alone."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            f"form-action {form_action}",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def headers(path: str, *, https: bool, immutable: bool) -> dict[str, str]:
    """All security headers of the answer to a request for `path`."""
    form_action = "'self'" if path.startswith("/research") else "'none'"
    chosen = {
        **COMMON,
        "Content-Security-Policy": content_security_policy(form_action),
        "Cache-Control": IMMUTABLE if immutable else NO_STORE,
    }
    if path.startswith(API):
        chosen |= {"Cache-Control": REVALIDATED, "Vary": "Accept, Authorization"}
    if https:
        chosen["Strict-Transport-Security"] = STRICT_TRANSPORT
    return chosen


def check_same_origin(site: str | None, origin: str | None, host: str, public_url: str) -> None:
    """Refuse a report that another site's page sends: there is no cookie to protect it.

    Browsers name the sender in Sec-Fetch-Site and Origin; programs that name none may send.
    """
    # Compared as text: a malformed Origin is another site's, never an error of ours.
    # The public address counts whatever Host a proxy passes on.
    public = "/".join(public_url.split("/")[:3])
    own = (f"https://{host}", f"http://{host}", public)
    elsewhere = origin is not None and origin not in own
    if site not in (None, "same-origin", "none") or elsewhere:
        raise CrossSiteError("a report is taken from this site's own page only")


def hash_of(token: str) -> bytes:
    """What the server keeps of a token: nobody comes in with what is read from the database.

    Our tokens have 256 random bits: who tries 10^9 a second for the age of the universe has tried
    one in 10^50. So there is no salt, no slow hash and no limit on tries; and as rows are
    looked up by the hash, how long that takes tells nothing of a token.
    """
    return hashlib.sha256(token.encode("utf-8")).digest()
