"""English names of languages, as other tools write them: "French", "Portuguese (pt-BR)"."""

from __future__ import annotations

import re
from functools import lru_cache

_TAG = re.compile(r"([a-zA-Z]{2,3})(?:[-_]([a-zA-Z]{4}))?(?:[-_]([a-zA-Z]{2}|[0-9]{3}))?")
_WITH_BRACKETS = re.compile(r"([^()]*)\(([^()]*)\)\s*")


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Return the English name of each language by its tag in lower case."""
    from babel import Locale

    return {code.replace("_", "-").lower(): name for code, name in Locale("en").languages.items()}


@lru_cache(maxsize=1)
def _tags() -> dict[str, str]:
    """Return the tag of each language by its English name and its own, in lower case."""
    from babel import Locale, UnknownLocaleError

    tags: dict[str, str] = {}
    codes = sorted(_names(), key=lambda code: (len(code), code))
    for code in (code for code in codes if len(code) == 2):
        try:
            tags[str(Locale(code).display_name).casefold()] = code
        except UnknownLocaleError:  # a language for which babel has no more than its name
            continue
    return tags | {_names()[code].casefold(): code for code in reversed(codes)}


@lru_cache(maxsize=1)
def _regions() -> dict[str, str]:
    """Return the code of each region by its code and its English name, in lower case."""
    from babel import Locale

    regions = {str(code): str(name) for code, name in Locale("en").territories.items()}
    by_name = {name.casefold(): code for code, name in regions.items()}
    return by_name | {code.casefold(): code for code in regions}


def language_tag(name: str) -> str:
    """Return the tag of a language that a person wrote, or "" if there is none.

    >>> [language_tag(name) for name in ("English (en)", "french", "pt_br", "Deutsch", "Elvish")]
    ['en', 'fr', 'pt-BR', 'de', '']
    >>> [language_tag(name) for name in ("French (CA)", "Portuguese (Brazil)", "English (old)")]
    ['fr-CA', 'pt-BR', 'en']
    """
    plain = " ".join(name.split())
    match = _WITH_BRACKETS.fullmatch(plain)
    if match is None:
        return _known_tag(plain) or _canonical(_tags().get(plain.casefold(), ""))
    words, inside = match[1].strip(), match[2].strip()
    tag, named = _known_tag(inside), language_tag(words)
    if words == inside:  # as `language_name` writes languages without a name
        return _canonical(inside)
    # Upper case means a region: French (CA) is not Catalan.
    if tag and (not named or tag == named or not inside.isupper()):
        return tag
    region = _regions().get(inside.casefold(), "")
    return f"{named}-{region}" if named and region and "-" not in named else named


def _known_tag(text: str) -> str:
    """Return a language tag in its usual form; "" if it is none, or of an unknown language."""
    from babel.core import get_global

    match = _TAG.fullmatch(text)
    if match is None:
        return ""
    language = match[1].lower()
    language = (
        language if len(language) == 2 else get_global("language_aliases").get(language, language)
    )
    return _canonical(text.replace(match[1], language, 1)) if language in _names() else ""


def _canonical(tag: str) -> str:
    match = _TAG.fullmatch(tag)
    if match is None:
        return ""
    parts = [match[1].lower(), (match[2] or "").title(), (match[3] or "").upper()]
    return "-".join(filter(None, parts))


def language_name(tag: str) -> str:
    """Return a language with its tag, as forms name it.

    >>> language_name("en"), language_name("pt-BR"), language_name("fr-CD"), language_name("qaa")
    ('English (en)', 'Brazilian Portuguese (pt-BR)', 'French (fr-CD)', 'qaa (qaa)')
    """
    names = _names()
    name = names.get(tag.lower()) or names.get(tag.partition("-")[0], "")
    return f"{name or tag} ({tag})"
