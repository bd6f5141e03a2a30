"""Pages as PDF: the very HTML of a page, laid out on A4 with a title, headings and tags."""

from __future__ import annotations

import logging
from functools import lru_cache

from survey.errors import MissingPartError

VARIANT = "pdf/ua-1"
"""ISO 14289: tagged, so that it can be read aloud in order."""

MOST_KEPT = 8
"""Documents that are remembered: one of thirty questions takes seconds to lay out."""


@lru_cache(maxsize=MOST_KEPT)
def to_pdf(page: str, style: str) -> bytes:
    """Lay out a page by a stylesheet; nothing is fetched, from anywhere.

    Raises MissingPartError where the system lacks Pango, which sets the text.
    """
    try:
        # Only here: it loads Pango, without which everything else works.
        import weasyprint
    except OSError as missing:
        raise MissingPartError(
            "this server cannot make PDFs: it lacks Pango (on Debian: apt-get install "
            "libpango-1.0-0 libpangoft2-1.0-0 fonts-dejavu-core). The report prints as well"
        ) from missing
    # What a stylesheet for browsers says beyond paper is no news.
    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    # No address in a page is asked: a survey's texts must not make the server call anybody.
    nowhere = weasyprint.urls.URLFetcher(allowed_protocols=())
    document = weasyprint.HTML(string=page, url_fetcher=nowhere)
    sheet = weasyprint.CSS(string=style, url_fetcher=nowhere)
    written: bytes = document.write_pdf(stylesheets=[sheet], pdf_variant=VARIANT)
    return written
