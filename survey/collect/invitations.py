"""Invitations: a link's token lets one report in, and only its SHA-256 is ever kept."""

from __future__ import annotations

import hashlib
import re

from survey.errors import ReportError

TOKEN = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
"""256 random bits in base64url without padding; the last character carries two zero bits."""


def token_hash(token: str) -> bytes:
    """SHA-256 of a token as it stands in its link; the token has 256 bits, so no salt is needed.

    Raises ReportError when it has not the form of a token.

    >>> token_hash("A" * 43).hex()[:16]
    '0f007385b6f9d4b7'
    """
    if not TOKEN.fullmatch(token):
        raise ReportError("invitation must be 32 bytes in base64url without padding, or empty")
    return hashlib.sha256(token.encode("ascii")).digest()
