"""Static check of the files that are not modules: the page, its icon, the styles and the texts.

The page follows from the other files and the collector, so it must be equal to the page that this
installation computes from them. The texts must be those of this installation. The icon and the
styles may contain only what cannot run code or make a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

from survey.respond.client import (
    FIELD_INDEX,
    FIELD_WORKER,
    ICON,
    INDEX,
    STYLE,
    Client,
    field_words_file,
    words_file,
)
from survey.respondent_texts import (
    LANGUAGES,
    device_keys,
    device_texts,
    fieldwork_keys,
    fieldwork_texts,
)

WORDS: Mapping[str, tuple[bytes, list[str]]] = {
    **{words_file(language): (device_texts(language), device_keys()) for language in LANGUAGES},
    **{
        field_words_file(language): (fieldwork_texts(language), fieldwork_keys())
        for language in LANGUAGES
    },
}
"""The content and the keys of each file of texts."""

NAMES = frozenset({INDEX, FIELD_INDEX, FIELD_WORKER, ICON, STYLE, *WORDS})

STYLE_REQUEST = re.compile(rb"url\(|src\(|@import|image|@font-face|\\", re.IGNORECASE)
"""Style syntax that makes requests, which could depend on ticked answers, or that hides them."""

ICON_PART = re.compile(
    rb"""<svg[ ]xmlns="http://www\.w3\.org/2000/svg"[ ]viewBox="[\d ]+">
    | <title>[\w ]*</title>
    | <(?:rect|circle|path)
      (?:[ ](?:width|height|rx|cx|cy|r|d|fill|stroke(?:-width|-linecap|-dasharray)?)="[\w#. -]*")*/>
    | </svg>\s*""",
    re.VERBOSE,
)
"""Shapes and their attributes, none of which can run code or name an address."""

EXCERPT, MAX_LINE = 60, 400
"""Maximum lengths of quotations in messages: of texts and parts, and of lines."""

NEWLINE = b"\n"


def failures(files: Mapping[str, bytes], collector: str) -> Iterator[str]:
    """Describe each difference from what the page and the files beside the modules may contain."""
    for name, content in files.items():
        if name in WORDS:
            yield from _altered_texts(name, content)
    if ICON in files:
        yield from _unknown_icon_part(files[ICON])
    if STYLE in files:
        yield from _style_requests(files[STYLE])
    for name in (INDEX, FIELD_INDEX, FIELD_WORKER):
        if name in files:
            yield from _altered_page(name, files, collector)


def place(content: bytes, at: int) -> str:
    """Return the row and column of a byte.

    >>> place(b"a\\nbc", 3)
    '2:2'
    """
    before = content[:at]
    return f"{before.count(NEWLINE) + 1}:{at - before.rfind(NEWLINE)}"


def _altered_texts(name: str, content: bytes) -> Iterator[str]:
    expected, keys = WORDS[name]
    if content == expected:
        return
    try:
        texts = json.loads(content)
    except (ValueError, RecursionError):
        texts = None
    if not isinstance(texts, list) or len(texts) != len(keys):
        yield f"{name}: not a list of {len(keys)} texts"
        return
    altered = [
        f"{name}: the text {key} is {str(text)[:EXCERPT]!r} "
        f"instead of {str(expected_text)[:EXCERPT]!r}"
        for key, text, expected_text in zip(keys, texts, json.loads(expected), strict=True)
        if text != expected_text
    ]
    yield from altered or [f"{name}: the texts have another spelling in JSON"]


def _unknown_icon_part(icon: bytes) -> Iterator[str]:
    at = 0
    while at < len(icon):
        part = ICON_PART.match(icon, at)
        if part is None:
            text = icon[at : at + EXCERPT].decode("utf-8", "replace")
            yield f"{ICON}:{place(icon, at)}: an icon may not contain {text}"
            return
        at = part.end()


def _style_requests(style: bytes) -> Iterator[str]:
    # A style in another encoding than its headers state would hide what it requests.
    if not style.isascii():
        yield f"{STYLE}: not in ASCII"
    elif match := STYLE_REQUEST.search(style):
        where = f"{STYLE}:{place(style, match.start())}"
        yield f"{where}: the style {match[0].decode()} could make a request"


def _altered_page(name: str, files: Mapping[str, bytes], collector: str) -> Iterator[str]:
    """Compare a page, or the worker of field mode, with the one derived from the other files."""
    # A verification may lack files that the survey does not need; the page contains their hashes.
    derived = (INDEX, FIELD_INDEX, FIELD_WORKER)
    sources = {path: content for path, content in files.items() if path not in derived}
    expected = Client({**Client.load().files, **sources}, collector).served[name]
    rows = zip_longest(files[name].split(NEWLINE), expected.split(NEWLINE), fillvalue=b"")
    for row, pair in enumerate(rows, 1):
        if pair[0] != pair[1]:
            line, expected_line = (text.decode("utf-8", "replace")[:MAX_LINE] for text in pair)
            yield f"{name}:{row}: {line!r} instead of {expected_line!r}"
            return
