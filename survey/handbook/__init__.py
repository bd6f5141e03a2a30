"""The handbook: Markdown pages, readable in the repository, with their HTML and a search.

`README.md` is the table of contents: its second-level headings are the parts, and its lists name
each page with its title and a summary. A page begins with its title as first-level heading.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from survey import methods
from survey.errors import NotFoundError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FOLDER = Path(__file__).parent
ADDRESS = "/handbook"
"""Address of the table of contents; pages and pictures are below it."""

CONTENTS = "README.md"
METHODS, METHODS_PAGE = "../methods", "methods"
"""The folder of the statistical methods in the table of contents, and the name of its one page."""

PART = re.compile(r"^## (.+)\n", re.M)
ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\): (.+?)$", re.M)
GENERATED = re.compile(r"^<!-- .*? -->\n", re.M)
"""The marks of generated parts, which readers of a page do not need."""

CONDITION = re.compile(r"^> IF ([A-Z ]+): (.*?)(?=^>?$|\Z)", re.M | re.S)
"""A quoted paragraph of a text that is filled in, and when it applies."""

MEDIA_TYPES: Mapping[str, str] = {
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".R": "text/plain; charset=utf-8",
    ".ipynb": "application/x-ipynb+json",
}
"""Media types of the files that pages show or offer, by the ending of their name."""

MAX_MATCHES = 20
"""Number of sections that a search shows."""

MAX_QUERY = 200
"""Characters of a query; the search ignores the rest."""

COMMON_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "how",
        "i",
        "if",
        "in",
        "is",
        "it",
        "my",
        "of",
        "on",
        "or",
        "our",
        "that",
        "the",
        "their",
        "this",
        "to",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)
"""Words that a query can contain without saying what it is about."""

EXCERPT = 160
"""Characters of an excerpt."""


@dataclass(frozen=True)
class Section:
    """A heading of a page and its text, to search in; `anchor` is "" before the first heading."""

    title: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page of the handbook.

    name      path below the handbook's address, such as "how-to/invitations"
    part      title of its part
    """

    name: str
    title: str
    summary: str
    part: str

    # Parsing all pages takes half a second, and most requests need titles only.
    @cached_property
    def _content(self) -> tuple[Markup, tuple[Section, ...]]:
        if self.name == METHODS_PAGE:
            return _methods_content(self)
        tokens = _parse(_read(file := f"{self.name}.md"), file)
        return _html(tokens), tuple(_sections(self.title, tokens))

    @property
    def html(self) -> Markup:
        """The content of the page, with its title."""
        return self._content[0]

    @property
    def sections(self) -> tuple[Section, ...]:
        """Sections that the search finds, in order."""
        return self._content[1]

    @property
    def address(self) -> str:
        """The page's address on the researchers' origin."""
        return f"{ADDRESS}/{self.name}"


@dataclass(frozen=True)
class Match:
    """A section that a search finds, with an excerpt that marks the words of the query."""

    page: Page
    section: Section
    excerpt: Markup

    @property
    def address(self) -> str:
        """The section's address."""
        anchor = self.section.anchor
        return f"{self.page.address}#{anchor}" if anchor else self.page.address


@cache
def parts() -> Mapping[str, tuple[Page, ...]]:
    """Return the pages of each part, both in the order of the table of contents."""
    titles_and_texts = PART.split(_read(CONTENTS))[1:]
    return {
        part: tuple(_page(part, *entry) for entry in ENTRY.findall(text.replace("'", "’")))
        for part, text in zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True)
    }


@cache
def pages() -> Mapping[str, Page]:
    """Return all pages by name, in the order of the table of contents."""
    return {page.name: page for pages in parts().values() for page in pages}


def page(name: str) -> Page:
    """Return a page; raises NotFoundError if the handbook has none of this name."""
    if name not in pages():
        raise NotFoundError("the handbook has no page at this address")
    return pages()[name]


def fill_in(name: str, values: Mapping[str, str], conditions: Mapping[str, bool]) -> Markup:
    """Return a page as HTML, with values instead of words in capitals.

    Quoted paragraphs that begin with "IF", a condition and a colon are left out unless the
    condition is true. Values are shown as text, whatever they contain.
    """
    text = CONDITION.sub(
        lambda match: f"> {match[2]}" if conditions[match[1]] else "", _read(f"{name}.md")
    )
    words = sorted(values, key=len, reverse=True)
    pattern = rf"\b({'|'.join(map(re.escape, words))})\b"
    text = re.sub(pattern, lambda match: f"**{_as_text(values[match[1]])}**", text)
    return render(text, f"{name}.md")


def _as_text(value: str) -> str:
    """Return one line of Markdown that shows a text as it is.

    >>> _as_text("[a](b) *c*")
    '\\\\[a\\\\]\\\\(b\\\\) \\\\*c\\\\*'
    """
    # Markdown knows ASCII punctuation only; a backslash before another sign would be shown.
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(value.split()))


@cache
def attachments() -> Mapping[str, Path]:
    """Return the files that pages show or offer, by their path below the handbook's address."""
    files = (file for file in FOLDER.rglob("*.*") if file.suffix in MEDIA_TYPES)
    return {file.relative_to(FOLDER).as_posix(): file for file in files}


def search(query: str) -> list[Match]:
    """Return the sections that contain the beginnings of all words of a query, the best first.

    If no section contains all of them, return those that contain most. Common words do not count.
    A word counts most in a page's title, less in a heading and least in the text.
    """
    words = dict.fromkeys(re.findall(r"\w+", query[:MAX_QUERY].lower()))
    words = {word: None for word in words if word not in COMMON_WORDS} or words
    patterns = [re.compile(_pattern(word), re.I) for word in words]
    rated = [
        (*_rate(patterns, page, section), page, section)
        for page in pages().values()
        for section in page.sections
    ]
    most = max((n_words for n_words, *_ in rated), default=0)
    matches = [entry for entry in rated if entry[0] == most and most]
    matches.sort(key=lambda entry: -entry[1])
    return [
        Match(page, section, _excerpt(section.text, patterns))
        for _, _, page, section in matches[:MAX_MATCHES]
    ]


def _pattern(word: str) -> str:
    """Return the pattern of words that begin with a word; a letter, such as R, stands alone."""
    return rf"\b{re.escape(word)}\b" if len(word) == 1 else rf"\b{re.escape(word)}\w*"


def _rate(patterns: Sequence[re.Pattern[str]], page: Page, section: Section) -> tuple[int, float]:
    """Return how many words of a query a section has, and how prominent they are in it."""
    scores = [
        16 * bool(pattern.search(page.title)) * (1 if section.anchor else 2)
        + 12 * bool(pattern.search(section.title))
        + min(len(pattern.findall(section.text)), 5)
        for pattern in patterns
    ]
    return sum(map(bool, scores)), sum(scores)


def _excerpt(text: str, patterns: Iterable[re.Pattern[str]]) -> Markup:
    """Return the beginning of a text, or the part around the first word, with marked words."""
    places = [match.start() for pattern in patterns if (match := pattern.search(text))]
    start = max(min(places, default=0) - EXCERPT // 3, 0)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    end = text.find(" ", start + EXCERPT)
    excerpt = text[start : end if end >= 0 else None]
    marked = re.sub(
        "|".join(f"({pattern.pattern})" for pattern in patterns),
        lambda match: f"\0{match[0]}\1",
        excerpt,
        flags=re.I,
    )
    html = str(escape(marked)).replace("\0", "<mark>").replace("\1", "</mark>")
    return Markup(("… " if start else "") + html + (" …" if end >= 0 else ""))  # noqa: S704


def _page(part: str, title: str, file: str, summary: str) -> Page:
    name = METHODS_PAGE if file == METHODS else file.removesuffix(".md")
    return Page(name, title, summary, part)


def _methods_content(page: Page) -> tuple[Markup, tuple[Section, ...]]:
    """Return all statistical methods as one page, with the anchors of the researchers' page."""
    html = [Markup("<h1>{}</h1>\n").format(page.title)]
    sections = [Section(page.title, "", page.summary)]
    for topic in methods.topics():
        html.append(Markup("<h2>{}</h2>\n").format(topic.title))
        for section in topic.sections:
            ids = Markup("").join(
                Markup('<span id="{}"></span>').format(other) for other in section.anchors[1:]
            )
            heading = Markup('<h3 id="{}">{}{}</h3>\n')
            html += [heading.format(section.anchor, ids, section.title), section.html]
            text = " ".join(section.html.striptags().split())
            sections.append(Section(section.title, section.anchor, text))
    html.append(Markup("<h2>References</h2>\n<ul>\n"))
    html += [Markup("<li>{}</li>\n").format(work) for work in methods.references().values()]
    html.append(Markup("</ul>\n"))
    return Markup("").join(html), tuple(sections)


def render(markdown: str, file: str) -> Markup:
    """Return the Markdown of a file of the handbook as HTML; HTML in it is shown as text."""
    return _html(_parse(markdown, file))


def _parse(markdown: str, file: str) -> Sequence[Token]:
    return _parser().parse(GENERATED.sub("", markdown), {"file": file})


def _html(tokens: Sequence[Token]) -> Markup:
    return Markup(_parser().renderer.render(tokens, _parser().options, {}))  # noqa: S704


def _sections(title: str, tokens: Sequence[Token]) -> Iterator[Section]:
    """Yield the page's sections, with the text before its first heading as one of them."""
    heading, anchor, texts = title, "", [""]
    for i, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            yield Section(heading, anchor, " ".join(texts[1:]))
            heading, anchor, texts = _plain(tokens[i + 1]), str(token.attrs["id"]), [""]
        elif token.type == "inline" and tokens[i - 1].type != "heading_open":
            texts.append(_plain(token))
        elif token.type == "fence":
            texts.append(token.content)
    yield Section(heading, anchor, " ".join(texts[1:]))


def _plain(token: Token) -> str:
    """Return the text of an inline token without its marks."""
    children = token.children or ()
    return "".join(child.content or " " * (child.type == "softbreak") for child in children)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "typographer": True})
    parser.enable(["table", "smartquotes"])
    parser.core.ruler.push("anchors", _add_anchors)
    parser.core.ruler.push("addresses", _rewrite_addresses)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    return parser


def _add_anchors(state: Any) -> None:
    """Give headings the anchors that they have in the repository, and tables their number."""
    n_tables = 0
    for i, token in enumerate(state.tokens):
        if token.type == "heading_open":
            token.attrs["id"] = anchor(_plain(state.tokens[i + 1]))
        if token.type == "table_open":
            n_tables += 1
            token.meta["number"] = n_tables


def anchor(heading: str) -> str:
    """Return the anchor of a heading, by the rule of GitHub.

    >>> anchor("Two-factor authentication, `SURVEY_KEYS`")
    'two-factor-authentication-survey_keys'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _rewrite_addresses(state: Any) -> None:
    """Turn links between files into addresses of the application."""
    for token in state.tokens:
        for child in token.children or ():
            for name in ("href", "src"):
                if name in child.attrs:
                    child.attrs[name] = _address(str(child.attrs[name]), state.env["file"])


def _address(target: str, file: str) -> str:
    """Return the address of a link in a file of the handbook.

    >>> _address("../reference/csv.md#columns", "how-to/a.md"), _address("#columns", "how-to/a.md")
    ('/handbook/reference/csv#columns', '#columns')
    """
    if re.match(r"[a-z]+:|[/#]", target):
        return target
    path, separator, fragment = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
    path = METHODS_PAGE if path == METHODS else path.removesuffix(".md")
    return f"{ADDRESS}/{path}{separator}{fragment}"


def _open_table(_renderer: Any, tokens: Sequence[Token], i: int, *_: Any) -> str:
    # A table that is wider than a phone scrolls, and a keyboard must be able to scroll it.
    label = f"Table {tokens[i].meta['number']}"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">\n<table>\n'


def _read(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")
