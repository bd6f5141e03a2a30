"""What respondents read of the interface, in every language it speaks: gettext catalogues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

FOLDER = Path(__file__).parent / "translations"
SOURCE = "en"
LANGUAGES = (SOURCE, "es", "pt", "ar")
"""Languages of the interface; the source's texts are what the others translate."""

AT_THE_SERVER = ("error", "option", "shell")
"""Parts of the catalogue that pages and definitions are made with here; devices get the rest."""

Text = str | tuple[str, ...]
"""One text, or one for each plural form, in gettext's order."""


@cache
def catalogue(language: str) -> Mapping[str, Text]:
    """All texts of a language, by the place where they stand."""
    path = FOLDER / language / "LC_MESSAGES" / "respondent.po"
    with path.open("rb") as file:
        messages = read_po(file, locale=language, abort_invalid=True)
    found: dict[str, Text] = {}
    for message in messages:
        if isinstance(message.id, str) and isinstance(message.string, str):
            found[message.id] = message.string
        elif message.string:
            found[message.id[0]] = tuple(message.string)
    del found[""]  # the catalogue's own header
    return found


def say(language: str, key: str) -> str:
    """One text that has no plural.

    >>> say("es", "option.yes")
    'Sí'
    """
    found = catalogue(language)[key]
    if not isinstance(found, str):
        raise TypeError(f"{key} has plural forms")
    return found


def closest(language: str) -> str | None:
    """The language of the interface that a tag means, whatever its region; None when there is none.

    >>> closest("es-MX"), closest("de")
    ('es', None)
    """
    base = language.split("-")[0].lower()
    return base if base in LANGUAGES else None


def device_keys() -> list[str]:
    """The places of the texts that devices need, in the order of `device_texts`."""
    return sorted(key for key in catalogue(SOURCE) if key.split(".")[0] not in AT_THE_SERVER)


@cache
def device_texts(language: str) -> bytes:
    """What a device gets of a language: its texts as a JSON list, in the order of their places.

    Nothing in it can end the element of a page that it stands in.
    """
    texts = [catalogue(language)[key] for key in device_keys()]
    written = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").encode("utf-8")
