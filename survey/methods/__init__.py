"""The statistical methods as Markdown: one file per topic, read by pages, report and PDF alike.

Each file begins with its title and its place in the order. Each section has a heading with its
anchors, a description, formulas with their wording for screen readers, examples as doctests, and
labelled paragraphs: Validity, Limits, Functions and References. `references.md` lists the works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

FOLDER = Path(__file__).parent

FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n+", re.S)
HEADING = re.compile(r"^## (.+?) \{(#.+?)\}$", re.M)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LABEL = re.compile(r"^\*\*(\w+)\.\*\* (.+)$", re.M)
REFERENCE = re.compile(r"^- \*\*(.+?)\.\*\* (.+)$", re.M)
SCRIPT = re.compile(r"([_^])(?:\{([^}]*)\}|(\S))")
"""A subscript or superscript: x_j, x^2, x_{j,k}."""

TAGS = {"_": "sub", "^": "sup"}


class Formula(NamedTuple):
    """A formula, and its wording for people who use a screen reader."""

    text: str
    wording: str

    @property
    def html(self) -> Markup:
        """The formula with its subscripts and superscripts.

        >>> Formula("π_j = x^{2n}", "").html
        Markup('π<sub>j</sub> = x<sup>2n</sup>')
        """
        return typeset(self.text)


@dataclass(frozen=True)
class Section:
    """One method.

    anchors     its addresses on the methods page, the main one first
    source      its Markdown, without the heading
    formulas    in their order
    examples    doctests
    functions   dotted names of the functions that compute it
    references  keys of `references`
    """

    title: str
    anchors: tuple[str, ...]
    source: str
    formulas: tuple[Formula, ...]
    examples: tuple[str, ...]
    functions: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The address that links use."""
        return self.anchors[0]

    @property
    def html(self) -> Markup:
        """The section as HTML, without its heading."""
        return render(self.source)


@dataclass(frozen=True)
class Topic:
    """One file: sections that belong together."""

    name: str
    title: str
    sections: tuple[Section, ...]


@cache
def topics() -> tuple[Topic, ...]:
    """Return the topics in their order; files without an order are no topics."""
    files = {file.stem: _read_file(file.name) for file in sorted(FOLDER.glob("*.md"))}
    ordered = [name for name in files if "order" in files[name][0]]
    ordered.sort(key=lambda name: int(files[name][0]["order"]))
    return tuple(
        Topic(name, files[name][0]["title"], tuple(_sections(files[name][1]))) for name in ordered
    )


@cache
def sections() -> Mapping[str, Section]:
    """Return each section under each of its anchors."""
    return {
        anchor: section
        for topic in topics()
        for section in topic.sections
        for anchor in section.anchors
    }


@cache
def references() -> Mapping[str, str]:
    """Return the full reference of each work by its key, such as "Wilson 1927"."""
    return dict(REFERENCE.findall(_read_file("references.md")[1]))


@cache
def symbols() -> Markup:
    """Return the table of symbols as HTML."""
    return render(_read_file("symbols.md")[1])


def interval_anchor(method: str) -> str:
    """Return the anchor of the interval that a row's `method` names, whatever its additions.

    >>> interval_anchor("clopper-pearson, simultaneous"), interval_anchor("t, with bias")
    ('interval-clopper-pearson', 'interval-t')
    """
    return f"interval-{method.split(',')[0]}"


def mechanism_anchor(name: str) -> str:
    """Return the anchor of a mechanism, given its name in definitions.

    >>> mechanism_anchor("grr")
    'mechanism-grr'
    """
    return f"mechanism-{name}"


def typeset(text: str) -> Markup:
    """Return escaped text with its subscripts and superscripts as HTML.

    >>> typeset("c_j < n^2")
    Markup('c<sub>j</sub> &lt; n<sup>2</sup>')
    """
    return Markup(SCRIPT.sub(_script, str(escape(text))))  # noqa: S704


@lru_cache(maxsize=256)
def render(markdown: str) -> Markup:
    """Return Markdown as HTML; HTML in the Markdown is shown as text.

    >>> render("The share `f` of <b>reports</b>, c_j / n.")
    Markup('<p>The share <code>f</code> of &lt;b&gt;reports&lt;/b&gt;, c<sub>j</sub> / n.</p>\\n')
    """
    return Markup(_parser().render(markdown))  # noqa: S704


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _render_text(_renderer: Any, tokens: Sequence[Any], i: int, _options: Any, _env: Any) -> str:
    return str(typeset(tokens[i].content))


def _render_fence(_renderer: Any, tokens: Sequence[Any], i: int, _options: Any, _env: Any) -> str:
    token = tokens[i]
    if token.info == "formula":
        formula = _formula(token.content)
        wording = escape(formula.wording)
        return f'<p class="formula" role="math" aria-label="{wording}">{formula.html}</p>\n'
    return f"<pre><code>{escape(token.content)}</code></pre>\n"


def _script(match: re.Match[str]) -> str:
    tag = TAGS[match[1]]
    return f"<{tag}>{match[2] or match[3]}</{tag}>"


def _read_file(name: str) -> tuple[dict[str, str], str]:
    """Return a file's front matter and its body."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    front = FRONT_MATTER.match(text)
    if front is None:
        raise ValueError(f"{name} must begin with its title between two lines of ---")
    fields = dict(line.split(": ", 1) for line in front[1].splitlines())
    return fields, text[front.end() :]


def _sections(body: str) -> Iterator[Section]:
    headings = list(HEADING.finditer(body))
    ends = [*(heading.start() for heading in headings[1:]), len(body)]
    for heading, end in zip(headings, ends, strict=True):
        source = body[heading.end() : end].strip()
        fences = FENCE.findall(source)
        labels = dict(LABEL.findall(source))
        yield Section(
            title=heading[1],
            anchors=tuple(anchor.removeprefix("#") for anchor in heading[2].split()),
            source=source,
            formulas=tuple(_formula(text) for kind, text in fences if kind == "formula"),
            examples=tuple(text for kind, text in fences if kind == "python"),
            functions=tuple(re.findall(r"`(.+?)`", labels.get("Functions", ""))),
            references=tuple(filter(None, labels.get("References", "").split("; "))),
        )


def _formula(text: str) -> Formula:
    """Return a formula from its block: the formula on the first line, its wording below."""
    formula, _, wording = text.strip().partition("\n")
    return Formula(formula, wording)
