"""Sheets of an XLSForm as rows of named cells, whatever names and languages its headers have.

Source of the names: https://xlsform.org/en/ref-table/ and the header aliases of pyxform 4.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from survey.questionnaire.error_messages import shortened
from survey.questionnaire.imports.assembly import Assembly
from survey.questionnaire.imports.markup import Text, text_of
from survey.questionnaire.imports.workbook import Rows
from survey.questionnaire.language_names import language_name, language_tag
from survey.respondent_texts import SOURCE

ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("caption",), "label"),
    **dict.fromkeys(("command",), "type"),
    **dict.fromkeys(("tag", "value"), "name"),
    **dict.fromkeys(("list name",), "list_name"),
    **dict.fromkeys(("relevance", "bind::relevant"), "relevant"),
    **dict.fromkeys(("bind::constraint",), "constraint"),
    **dict.fromkeys(("bind::required",), "required"),
    **dict.fromkeys(("readonly", "bind::readonly"), "read_only"),
    **dict.fromkeys(("calculate", "bind::calculate"), "calculation"),
    **dict.fromkeys(("control::appearance", "body::appearance"), "appearance"),
    **dict.fromkeys(("constraining_message", "bind::jr:constraintmsg"), "constraint_message"),
    **dict.fromkeys(("requiredmsg", "bind::jr:requiredmsg"), "required_message"),
    **dict.fromkeys(("count", "jr:count", "control::jr:count"), "repeat_count"),
    **dict.fromkeys(("set_form_title",), "form_title"),
    **dict.fromkeys(("set_form_id",), "form_id"),
    **{name: f"media::{name}" for name in ("image", "big-image", "audio", "video")},
}
"""Other names of columns, in lower case and with underscores."""

OWN = "survey_"
"""Beginning of the columns that only this project writes and reads: other tools ignore them."""

OWN_TEXTS = (f"{OWN}unit", f"{OWN}low_label", f"{OWN}high_label")
OWN_STEP = f"{OWN}step"
OWN_TITLE = f"{OWN}title"

TRANSLATED = frozenset(
    (
        *("label", "hint", "guidance_hint", "constraint_message", "required_message"),
        OWN_TITLE,
        *("media::image", "media::big-image", "media::audio", "media::video", *OWN_TEXTS),
    )
)
"""Columns whose header may name a language."""


class Column(NamedTuple):
    """A column by its usual name, its language as the header writes it, and the whole header."""

    name: str
    language: str
    header: str


def parse_header(header: str) -> Column:
    """Return the column that a header names.

    >>> parse_header("Label :: English (en)")[:2], parse_header("list name")[:2]
    (('label', 'English (en)'), ('list_name', ''))
    >>> parse_header("image::French")[:2], parse_header("bind:relevant")[:2]
    (('media::image', 'French'), ('relevant', ''))
    """
    between = "::" if "::" in header else ":"
    parts = [" ".join(part.split()) for part in header.split(between)]
    names = [part.lower().replace(" ", "_") for part in parts]
    for n in range(len(parts), 0, -1):
        name = "::".join(names[:n])
        name = ALIASES.get(name, name)
        if name in TRANSLATED:
            return Column(name, between.join(parts[n:]), header)
    whole = "::".join(names)
    return Column(ALIASES.get(whole, whole), "", header)


@dataclass(frozen=True)
class Row:
    """A row with content: its number in the sheet, and its cells by column."""

    number: int
    cells: Mapping[Column, str]
    _by_name: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_name = {column.name: text for column, text in [*self.cells.items()][::-1]}
        object.__setattr__(self, "_by_name", by_name)

    def get(self, name: str) -> str:
        """Return the text of a column, "" if it is empty."""
        return self._by_name.get(name, "")

    def is_on(self, name: str) -> bool:
        """Return whether a column says yes, as far as a form can know it in advance."""
        return self.get(name).lower() in ("yes", "true", "true()")

    @property
    def name(self) -> str:
        """The element's name, or where it is."""
        return self.get("name") or f"row {self.number}"

    @property
    def words(self) -> list[str]:
        """The words of the appearance."""
        return self.get("appearance").lower().split()


def read_rows(rows: Rows, sheet: str, to: Assembly) -> list[Row]:
    """Return the rows below the headers; cells without a header are reported."""
    if not rows:
        return []
    (_, headers), *remaining_rows = rows
    columns: list[Column | None] = []
    for header in headers:
        column = parse_header(header) if header else None
        names = {
            (column_before.name, column_before.language.casefold())
            for column_before in columns
            if column_before
        }
        if column and (column.name, column.language.casefold()) in names:
            to.drop(sheet, header, "the sheet has another column of this name")
            column = None
        columns.append(column)
    matches = [Row(number, _cells(columns, cells)) for number, cells in remaining_rows]
    for row, (_, cells) in zip(matches, remaining_rows, strict=True):
        for i, text in enumerate(cells):
            if text and (i >= len(headers) or not headers[i]):
                to.drop(row.name, f"column {i + 1}", "the column has no header")
    return [row for row in matches if row.cells]


def _cells(columns: Sequence[Column | None], cells: Sequence[str]) -> dict[Column, str]:
    pairs = zip(columns, cells, strict=False)
    return {column: text for column, text in pairs if column and text}


MAX_TABLE = 100
"""Maximum number of rows of a table."""


def rows_until_end(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of a group without inner groups; none if it has some, or no end."""
    inner: list[Row] = []
    for row in rows:
        words = row.get("type").lower().replace("_", " ")
        if words.startswith("end "):
            return inner
        if words.startswith("begin ") or len(inner) == MAX_TABLE:
            return []
        inner.append(row)
    return []


def table_rows(group: Row, inner: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of a table that are no questions, and its questions; none if it is none."""
    if "table-list" in group.words:
        return (), inner
    first, *remaining_rows = inner
    if "label" in first.words and all("list-nolabel" in row.words for row in remaining_rows):
        return (first,), remaining_rows
    return (), ()


class Languages:
    """The languages of a form: its own, and the tag of each language that its headers name."""

    def __init__(self, rows: Iterable[Row], default: str) -> None:
        columns = dict.fromkeys(column for row in rows for column in row.cells)
        names = dict.fromkeys(column.language for column in columns if column.language)
        untranslated = any(c.name == "label" and not c.language for c in columns)
        self._own_name = default or ("" if untranslated else next(iter(names), ""))
        self.own_language = language_tag(self._own_name) or SOURCE
        tags = {name.casefold(): language_tag(name) for name in names}
        self._tags = {**tags, "": self.own_language, self._own_name.casefold(): self.own_language}
        self._unknown = [name for name in names if not self._tags[name.casefold()]]

    def report(self, to: Assembly) -> None:
        """Report the languages that cannot be recognized."""
        if self._own_name and not language_tag(self._own_name):
            to.change(self._own_name, "language", f"is taken as {language_name(self.own_language)}")
        for name in self._unknown:
            why = "is no known language; write its tag behind it, such as French (fr)"
            to.drop(name, "language", why)

    def text(self, row: Row, name: str) -> tuple[Text, list[Column]]:
        """Return a text in all languages, and the columns that repeat another one's language.

        A text that lacks the form's own language has the first of the others instead.
        """
        texts: dict[str, str] = {}
        repeated: list[Column] = []
        columns = [column for column in row.cells if column.name == name]
        # A column that names the own language comes before one that names none.
        for column in sorted(columns, key=lambda column: not column.language):
            tag, text = self._tags[column.language.casefold()], plain(row.cells[column])
            if tag and texts.setdefault(tag, text) != text:
                repeated.append(column)
        own_text = texts.pop(self.own_language, "") or next(iter(texts.values()), "")
        in_languages = {self.own_language: own_text} | {
            tag: text for tag, text in texts.items() if text
        }
        return (in_languages if len(in_languages) > 1 else own_text), repeated

    def borrowed(self, row: Row, names: Iterable[str]) -> list[Column]:
        """Return the columns whose text stands in for a missing one in the form's own language."""
        matches: list[Column] = []
        for name in names:
            tags = {
                tag: column
                for column in reversed([*row.cells])
                if column.name == name and (tag := self._tags[column.language.casefold()])
            }
            if tags and self.own_language not in tags:
                matches.append([*tags.values()][-1])
        return matches


def plain(text: str) -> str:
    """Return a text without HTML, and without the emphasis and headings of Markdown.

    >>> plain("<span style='color:red'>Age</span><br>if <5 or >60, under <X> km")
    'Age\\nif <5 or >60, under <X> km'
    >>> plain("# Do you *really* mean **2*3*4**? *"), plain("# 1"), plain("# of children")
    ('Do you really mean 2*3*4? *', '# 1', '# of children')
    >>> plain("2 * 3 * 4"), plain("2*3*4"), plain(r"\\# No \\*emphasis\\*")
    ('2 * 3 * 4', '2*3*4', '# No *emphasis*')
    """
    text = STRONG.sub(r"\1", text_of(text).text)
    lines = (_without_heading(line) for line in EMPHASIS.sub(r"\1", text).split("\n"))
    return ESCAPE.sub(r"\1", "\n".join(lines))


STRONG = re.compile(r"(?<![\w*\\])\*\*(?=[^\s*])((?:[^*\n]|\*(?!\*))++)(?<=\S)\*\*(?![\w*])")
EMPHASIS = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]++)(?<=[^\s\\])\*(?![\w*])")
"""Emphasis of Markdown: asterisks around words, with none of the same kind between them."""

ESCAPE = re.compile(r"\\([\\*#_])")
"""A character that Markdown would otherwise take for markup."""


def _without_heading(line: str) -> str:
    """Return a line without the mark of a heading, which is a number sign before other words."""
    mark, _, words = line.partition(" ")
    is_heading = re.fullmatch("#{1,6}", mark) and words and not re.match("[0-9a-z]", words)
    return words if is_heading else line


def escaped(text: str) -> str:
    """Return a text in which tools find no Markdown, if they would find any.

    >>> escaped("2 * 3"), escaped("a *b*"), escaped("# No")
    ('2 * 3', 'a \\\\*b\\\\*', '\\\\# No')
    """
    if plain(text).split() == text_of(text).text.split():
        return text
    return ESCAPED.sub(r"\\\g<0>", text)


ESCAPED = re.compile(r"[\\*#]")


def parse_parameters(text: str) -> dict[str, str]:
    """Return the parameters of a question.

    >>> parse_parameters("start=0; end = 10,step=2 seed")
    {'start': '0', 'end': '10', 'step': '2', 'seed': ''}
    """
    words = re.sub(r"\s*=\s*", "=", text[:1_000]).replace(";", " ").replace(",", " ").split()
    pairs = (word.partition("=") for word in words)
    return {shortened(name.lower()): value for name, _, value in pairs}
