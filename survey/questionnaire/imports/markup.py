"""Texts of other tools: HTML in them as plain text."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

Text = str | dict[str, str]
"""A text, or a table of languages."""

BLOCKS = frozenset(
    (
        *("address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "footer"),
        *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("p", "pre", "section", "table", "td", "th", "tr", "ul"),
    )
)
"""Elements after which a new line begins."""

MEDIA = {
    "a": "links",
    **dict.fromkeys(("img", "picture", "svg"), "pictures"),
    **dict.fromkeys(("audio", "embed", "iframe", "object", "video"), "media"),
    **dict.fromkeys(("button", "input", "select", "textarea"), "form fields"),
    **dict.fromkeys(("script", "style"), "scripts and styles"),
}
"""Elements whose effect a plain text loses: the name of the loss."""

INLINE = frozenset(
    (
        *("abbr", "b", "big", "body", "center", "cite", "code", "del", "em", "font", "head"),
        *("html", "i", "ins", "kbd", "label", "mark", "meta", "q", "s", "small", "source"),
        *("span", "strike", "strong", "sub", "sup", "tbody", "tfoot", "thead", "title", "tt", "u"),
    )
)

HIDDEN = ("script", "style")
"""Elements whose content is no text."""

ATTRIBUTE = r"""\s++[a-zA-Z_:][\w:.-]*+\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'|[^\s"'<>=`]++)"""
TAG = re.compile(
    rf"<(/?)([a-zA-Z][a-zA-Z0-9]{{0,15}})(?:{ATTRIBUTE})*+\s*+/?>|<!--(?:(?!<!--|-->).)*+-->",
    re.DOTALL,
)
"""A tag whose attributes all have values, or a comment: "<low or score>" is none."""


class PlainText(NamedTuple):
    """A text without markup, and the names of what the markup contained beside text."""

    text: str
    losses: frozenset[str]


def plain_text(markup: str) -> PlainText:
    """Return the text of HTML, with its line breaks; what is no tag of HTML stays.

    >>> plain_text("<p>R&amp;D: 3 < 4</p><p>See <a href='x'>here</a></p>")
    PlainText(text='R&D: 3 < 4\\n\\nSee here', losses=frozenset({'links'}))
    """
    text, losses = _without_tags(markup)
    return PlainText(_tidy(html.unescape(text)), losses)


def text_of(marked: str) -> PlainText:
    """Return a text with some tags of HTML without them; its "&" means itself.

    >>> text_of("A &amp; B if a<b and <b class=x>c</b> > d").text
    'A &amp; B if a<b and c > d'
    """
    text, losses = _without_tags(marked)
    return PlainText(_tidy(text), losses)


def _without_tags(markup: str) -> PlainText:
    parts: list[str] = []
    losses: set[str] = set()
    place, hidden_element = 0, ""
    for tag in TAG.finditer(markup):
        closes, name = tag[1], (tag[2] or "").lower()
        if name and name not in BLOCKS | INLINE and name not in MEDIA:
            continue
        if not hidden_element:
            parts.append(markup[place : tag.start()])
        place = tag.end()
        if hidden_element:
            hidden_element = "" if closes and name == hidden_element else hidden_element
        elif name in BLOCKS:
            parts.append("\n")
        elif name in MEDIA and not closes:
            losses.add(MEDIA[name])
            hidden_element = name if name in HIDDEN else ""
    parts.append("" if hidden_element else markup[place:])
    return PlainText("".join(parts), frozenset(losses))


def _tidy(text: str) -> str:
    """Return a text with single spaces and at most one empty line between others."""
    text = text.replace("\xa0", " ").replace("\r\n", "\n").replace("\r", "\n")
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return _printable(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip())


def one_line(text: str) -> str:
    """Return a text in one line.

    >>> one_line("One\\n\\ntwo")
    'One two'
    """
    return " ".join(text.split())


def _printable(text: str) -> str:
    """Return a text without characters that no text of a definition may contain."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", "", text)
