"""Bytes that many are sent: compressed once, answered in the best form that a browser takes."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache

import brotli
from flask import Response, request

FORMS = ("br", "gzip")
"""Content codings, best first."""


@dataclass(frozen=True)
class Compressed:
    """The same content as it is, and in each of `FORMS`."""

    plain: bytes
    forms: dict[str, bytes]

    @classmethod
    def of(cls, content: bytes) -> Compressed:
        """Compress as well as it goes: this is done once, sending often."""
        return cls(
            content,
            {
                "br": brotli.compress(content, quality=11),
                # No time of day in it: the same content has the same bytes.
                "gzip": gzip.compress(content, 9, mtime=0),
            },
        )

    def response(self, content_type: str, status: int = 200, *, vary: str = "") -> Response:
        """The answer to the request at hand, which says what codings its sender takes.

        `vary` names other headers of a request on which the content depends.
        """
        coding = next((form for form in FORMS if request.accept_encodings[form] > 0), None)
        body = self.forms[coding] if coding else self.plain
        response = Response(body, status, content_type=content_type)
        response.headers["Vary"] = f"Accept-Encoding, {vary}" if vary else "Accept-Encoding"
        if coding:
            response.headers["Content-Encoding"] = coding
        return response


compressed = lru_cache(maxsize=64)(Compressed.of)
"""The same, of what is sent again and again."""
