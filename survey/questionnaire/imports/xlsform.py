"""XLSForm: an Excel file with the sheets survey, choices and settings.

Sources of the format: https://xlsform.org/en/ref-table/, and the type aliases of pyxform 4.5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from survey.questionnaire.definition import MAX_QUESTIONS
from survey.questionnaire.drafts.draft import slug
from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports.assembly import (
    Assembly,
    Condition,
    Imported,
    divided,
    division,
    listed_options,
)
from survey.questionnaire.imports.markup import Text, text_of
from survey.questionnaire.imports.workbook import read_sheets
from survey.questionnaire.imports.xlsform_expressions import (
    REFERENCES,
    condition,
    references,
)
from survey.questionnaire.imports.xlsform_sheets import (
    MAX_TABLE,
    OWN,
    OWN_TEXTS,
    OWN_TITLE,
    TRANSLATED,
    Column,
    Languages,
    Row,
    read_rows,
    rows_until_end,
    table_rows,
)
from survey.questionnaire.imports.xlsform_types import (
    DEVICE_DATA,
    DROPPED,
    NUMBERS,
    ONE,
    Answers,
    OptionList,
    date_answers,
    number_answers,
    parse_select,
    range_answers,
    scale_answers,
    select_answers,
    usual_type,
)
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.kinds.base import SPECIAL
from survey.questionnaire.language_names import language_name
from survey.questionnaire.texts import SURVEY_TEXTS

SURVEY, CHOICES, SETTINGS = "survey", "choices", "settings"

OLD_CHOICES = "choices and columns"
"""Name of the sheet of choices in old forms."""

NOT_REQUIRED = "no question can be required: everybody may decline to answer"
MEDIA = "its pictures and recordings are left out; upload pictures in the builder"

REASONS: Mapping[str, str] = {
    "required": NOT_REQUIRED,
    "required_message": NOT_REQUIRED,
    "default": "an answer that is given in advance would be reported",
    "read_only": "questions can only be asked or skipped",
    "calculation": "calculated values would need the true answers",
    "choice_filter": "all options are offered to everybody",
    "constraint": "only ranges and numbers of ticks are checked",
    "constraint_message": "the page itself says which answers are possible",
    "guidance_hint": "nobody reads the questions aloud",
    "appearance": "only affects the look",
    "repeat_count": "is asked once",
    **{f"media::{name}": MEDIA for name in ("image", "big-image", "audio", "video")},
    "parameters": "has no counterpart",
}
"""Why these columns are not imported, where an element does not use them."""

TOO_MANY = f"a survey has at most {MAX_QUESTIONS} questions"

MAX_DEPTH = 20
"""Maximum number of groups within each other."""

BASIC = frozenset(("type", "name", "label", "hint", "relevant", "disabled"))
"""Columns that arrive with every question, or are reported with it."""


def read(
    content: bytes, name: str, *, skip_logic: bool = False, today: date | None = None
) -> Imported:
    """Import an XLSForm; raises DefinitionError if it is none.

    `today` is the day that `today()` means in constraints.
    """
    sheets = read_sheets(content, name, (SURVEY, CHOICES, OLD_CHOICES, SETTINGS))
    by_name = {sheet.strip().casefold(): rows for sheet, rows in sheets.items()}
    by_name.setdefault(CHOICES, by_name.get(OLD_CHOICES))
    if not by_name.get(SURVEY):
        raise refusal([(shortened(name), 'is no XLSForm: it has no sheet "survey" with content')])
    to = Assembly("", skip_logic=skip_logic, references=REFERENCES)
    for sheet, rows in sheets.items():
        if rows is None:
            to.drop(sheet, "sheet", "only survey, choices and settings are imported")
    survey, choices, settings = (
        read_rows(by_name.get(part) or (), part, to) for part in (SURVEY, CHOICES, SETTINGS)
    )
    if not any(row.get("type") for row in survey):
        raise refusal([(shortened(name), 'its sheet "survey" has no column "type"')])
    reader = _Reader(to, survey, choices, settings, today or datetime.now(UTC).date())
    return reader.read()


@dataclass(frozen=True)
class _Group:
    """A group of elements that has begun, after `questions` others."""

    row: Row
    kind: str
    title: Text
    condition: str
    questions: int
    is_repeated: bool


@dataclass(frozen=True)
class _Note:
    """A note that waits for the next question."""

    row: Row
    kind: str
    text: Text
    conditions: tuple[str, ...]


class _Reader:
    """Reads the rows of a form, each by the method of its type."""

    def __init__(
        self,
        to: Assembly,
        survey: Sequence[Row],
        choices: Sequence[Row],
        settings: Sequence[Row],
        today: date,
    ) -> None:
        self._to, self._survey, self._today = to, survey, today
        self._settings = settings[0] if settings else Row(0, {})
        default = self._settings.get("default_language")
        self._languages = Languages([*survey, *choices, *settings], default)
        to.language = self._languages.own_language
        self._lists: dict[str, OptionList] = {}
        self._read_choices(choices)
        self._groups: list[_Group] = []
        self._notes: list[_Note] = []
        self._survey_texts: dict[str, list[Text]] = {}
        self._questions = 0
        for row in settings[1:]:
            to.drop(row.name, "settings", "only the first row of settings counts")

    def read(self) -> Imported:
        """Read all rows."""
        self._read_settings()
        self._to.add_page()
        finished = 0
        for i, row in enumerate(self._survey):
            if i >= finished:
                finished = i + self._read_row(row, self._survey[i + 1 : i + 2 + MAX_TABLE])
        while self._groups:
            self._end_group()
        self._end_notes()
        for place, texts in self._survey_texts.items():
            existing = self._to.texts.get(place, "")
            self._to.texts[place] = self._join([existing, *texts], "\n\n")
        for name, options in self._lists.items():
            if not options.is_used:
                self._to.drop(name, "list of options", "no question that arrives uses it")
        self._languages.report(self._to)
        return self._to.finish()

    def _read_settings(self) -> None:
        form_id = self._settings.get("form_id")
        title = self._line(self._settings, OWN_TITLE) or self._line(self._settings, "form_title")
        self._to.texts |= {"title": title or form_id} if title or form_id else {}
        self._to.texts |= {"slug": slug(form_id)} if form_id else {}
        arriving = {OWN_TITLE, "form_title", "form_id", "default_language"}
        self._report_cells(self._settings, arriving, "settings")

    def _read_choices(self, rows: Iterable[Row]) -> None:
        reasons: dict[tuple[str, str, str], int] = {}
        borrowed: Counter[tuple[str, str]] = Counter()
        for row in rows:
            list_name, value = row.get("list_name"), row.get("name")
            if not list_name or not value:
                self._to.drop(row.name, "choice", "has no list or no name")
                continue
            options = self._lists.setdefault(list_name, OptionList())
            label = self._line(row, "label") or value
            if value in SPECIAL:
                options.special[value] = label
            else:
                options.choices.append((value, label))
            arriving = {"list_name", "name", "label"}
            for column, why in self._lost_columns(row, arriving).items():
                reasons[list_name, column.header, why] = (
                    reasons.get((list_name, column.header, why), 0) + 1
                )
            for column in self._languages.borrowed(row, ["label"]):
                borrowed[list_name, column.header] += 1
        for (list_name, header), n in borrowed.items():
            how = f"{self._shown_in_own()} (options: {n})"
            self._to.change(list_name, f"{header} of options", how)
        for (list_name, header, why), n in reasons.items():
            self._to.drop(list_name, f"{header} of options", f"{why} (options: {n})")

    def _read_row(self, row: Row, following: Sequence[Row]) -> int:
        """Read a row, and return how many rows this has finished."""
        kind = " ".join(row.get("type").split())
        words = kind.lower().replace("_", " ")
        if not kind:
            self._to.drop(row.name, "row", "has no type")
        elif row.is_on("disabled"):
            self._to.drop(row.name, kind, "is disabled")
        elif match := re.fullmatch(r"begin (l?group|repeat|loop|looped group)(?: over .*)?", words):
            return self._begin_group(row, kind, match[1], following)
        elif re.fullmatch(r"end (l?group|repeat|loop|looped group)", words):
            if self._groups:
                self._report_end(row, self._groups[-1].row)
                self._end_group()
            else:
                self._to.drop(row.name, kind, "no group has begun")
        else:
            self._read_element(row, kind)
        return 1

    # -- groups

    def _begin_group(self, row: Row, kind: str, word: str, following: Sequence[Row]) -> int:
        is_repeated = word not in ("group", "lgroup")
        inner = [] if is_repeated else rows_until_end(following)
        if inner and self._add_matrix(row, kind, inner):
            self._report_end(following[len(inner)], row)
            return len(inner) + 2
        if len(self._groups) >= MAX_DEPTH:
            raise refusal([(shortened(row.name), "is in too many groups")])
        title = self._line(row, "label")
        group = _Group(row, kind, title, row.get("relevant"), self._questions, is_repeated)
        self._groups.append(group)
        self._to.add_page(self._title())
        return 1

    def _report_end(self, row: Row, begin: Row) -> None:
        """Report what the end of a group says beyond its beginning."""
        for column, cell in row.cells.items():
            if column.name != "type" and cell != begin.cells.get(column):
                self._to.drop(row.name, column.header, "the end of a group needs only its type")

    def _title(self) -> Text:
        """Return the title of a page: that of its group, after those of the groups around it."""
        titles = [group.title for group in self._groups if group.title]
        return self._join(titles, ": ") if titles else ""

    def _end_group(self) -> None:
        group = self._groups.pop()
        row, kind = group.row, group.kind
        if self._questions == group.questions:
            self._to.drop(row.name, kind, "none of its elements arrives")
        elif group.is_repeated:
            self._to.change(row.name, kind, "is asked once")
        else:
            self._to.keep(row.name, kind)
        if self._questions > group.questions:
            arriving = {"type", "name", "label", "relevant"}
            pages = {"appearance"} if row.words == ["field-list"] else set()
            self._report_cells(row, arriving | pages, row.name)
        self._to.add_page(self._title())

    def _add_matrix(self, row: Row, kind: str, inner: Sequence[Row]) -> bool:
        """Add a group whose questions share one list of options, if it is shown as a table."""
        header, rows = table_rows(row, inner)
        options = self._shared_options(rows)
        if options is None or self._questions + len(rows) > MAX_QUESTIONS:
            return False
        prefix, options.is_used = f"{row.name}_", True
        labels = [
            (part.name.removeprefix(prefix), self._line(part, "label") or part.name)
            for part in rows
        ]
        lines = [{"id": line["id"], "text": line["label"]} for line in listed_options(labels)[0]]
        names = {line["id"]: part.name for line, part in zip(lines, rows, strict=True)}
        parts, scale = divided(lines), scale_answers(options)
        for matrix in parts:
            form = {**scale.form, "type": "matrix", "rows": matrix}
            id_ = self._add(row, kind, Answers(form, {}, division(parts), {"appearance"}))
            self._to.add_rows(id_, {names[line["id"]]: line["id"] for line in matrix}, scale.values)
        for part in header:
            self._to.drop(part.name, part.get("type"), "only shows the labels of the table")
        for part in rows:
            self._to.keep(part.name, part.get("type"))
            words = {"appearance"} if part.words == ["list-nolabel"] else set()
            self._report_cells(part, BASIC - {"hint"} | words, part.name)
        return True

    def _shared_options(self, rows: Sequence[Row]) -> OptionList | None:
        """Return the list of options that all rows of a table share, or None if it is no matrix."""
        selects = {parse_select(row.get("type")) for row in rows}
        if len(rows) < 2 or len(selects) > 1 or any(row.get("relevant") for row in rows):
            return None
        select = selects.pop()
        options = self._lists.get(select.list_name)
        if select.method != ONE or select.has_other or options is None:
            return None
        return options if 2 <= len(options.choices) <= options.most(ONE) else None

    # -- one method for each type

    def _read_element(self, row: Row, kind: str) -> None:
        select, words = parse_select(kind), usual_type(kind)
        answers: Answers | str
        if self._questions >= MAX_QUESTIONS:
            answers = TOO_MANY
        elif select.method:
            answers = select_answers(row, select, self._lists.get(select.list_name))
        elif words == "note":
            self._note(row, kind)
            return
        elif words in ("acknowledge", "trigger"):
            changes = ["asks for yes or no instead of an OK"]
            answers = Answers({"type": "yes_no"}, {"yes": "OK", "no": ""}, changes)
        elif words in NUMBERS:
            answers = number_answers(row, words)
        elif words == "range":
            answers = range_answers(row)
        elif words == "date":
            answers = date_answers(row, self._today)
        else:
            unknown = "is of a type that has no counterpart"
            answers = DEVICE_DATA if words.startswith("uri:") else DROPPED.get(words, unknown)
        if isinstance(answers, str):
            self._to.drop(row.name, kind, answers)
        else:
            self._add(row, kind, answers)

    def _note(self, row: Row, kind: str) -> None:
        conditions = self._conditions(row)
        text = self._join([self._text(row, "label"), self._text(row, "hint")], "\n\n")
        if not text:
            self._to.drop(row.name, kind, "has no text")
        elif references(str(text)):
            self._to.drop(row.name, kind, "shows answers or calculated values")
        else:
            self._notes.append(_Note(row, kind, text, conditions))

    # -- parts

    def _add(self, row: Row, kind: str, answers: Answers) -> str:
        """Add a question with the texts and columns that all types share, and return its id."""
        conditions, question = self._conditions(row), WRITTEN_KINDS[answers.form["type"]]
        own_texts = OWN_TEXTS if question.is_numeric else ()
        helps = [*self._introduce(conditions), self._text(row, "hint")]
        texts = {
            "text": self._text(row, "label") or row.name,
            "help": self._join(helps, "\n\n"),
            **{name.removeprefix(OWN): self._line(row, name) for name in own_texts},
        }
        rule, why = self._condition(conditions)
        id_ = self._to.add(
            row.name,
            kind,
            {**{name: text for name, text in texts.items() if text}, **answers.form},
            values=answers.values,
            changes=answers.changes,
            condition=rule,
        )
        self._questions += len(answers.form.get("rows", [""]))
        if why:
            self._to.drop(row.name, "condition", f"{why}; everybody is asked this")
        self._report_cells(row, {*BASIC, *answers.arriving, *own_texts}, row.name)
        return id_

    def _conditions(self, row: Row) -> tuple[str, ...]:
        """Return the conditions of a row and of the groups around it."""
        conditions = (*(group.condition for group in self._groups), row.get("relevant"))
        return tuple(dict.fromkeys(filter(None, conditions)))

    def _condition(self, conditions: Sequence[str]) -> tuple[Condition | None, str]:
        if not conditions:
            return None, ""
        if len(conditions) > 1:
            return None, "depends on several conditions"
        return condition(conditions[0])

    def _introduce(self, conditions: tuple[str, ...]) -> list[Text]:
        """Return the notes that explain the next question; the first ones introduce the survey."""
        helps: list[Text] = []
        for note in self._notes:
            if note.conditions and note.conditions != conditions:
                self._drop_conditional(note)
            elif self._questions or note.conditions:
                helps.append(note.text)
                self._to.change(note.row.name, note.kind, "explains the next question")
                self._report_cells(note.row, BASIC, note.row.name)
            else:
                place = note.row.name if note.row.name in SURVEY_TEXTS else "introduction"
                self._add_survey_text(place, note)
        self._notes.clear()
        return helps

    def _end_notes(self) -> None:
        """Show the notes behind the last question after sending."""
        for note in self._notes:
            if note.conditions:
                self._drop_conditional(note)
            else:
                self._add_survey_text("thanks", note)
        self._notes.clear()

    def _drop_conditional(self, note: _Note) -> None:
        why = "a text that depends on answers would reveal them"
        self._to.drop(note.row.name, note.kind, why)

    def _add_survey_text(self, place: str, note: _Note) -> None:
        """Add a note to a text of the survey, which is on the start page or after sending."""
        self._survey_texts.setdefault(place, []).append(note.text)
        if note.row.name == place:
            self._to.keep(note.row.name, note.kind)
        else:
            where = "after sending" if place == "thanks" else "on the start page"
            self._to.change(note.row.name, note.kind, f"is shown {where}")
        self._report_cells(note.row, BASIC, note.row.name)

    def _report_cells(self, row: Row, arriving: Collection[str], name: str) -> None:
        """Report the cells of a row that do not arrive with it."""
        for column, why in self._lost_columns(row, arriving).items():
            self._to.drop(name, column.header, why)
        for column in self._languages.borrowed(row, TRANSLATED & {*arriving}):
            self._to.change(name, column.header, self._shown_in_own())

    def _shown_in_own(self) -> str:
        language = language_name(self._languages.own_language)
        return f"is shown in {language}, too, because there is no text in this language"

    def _lost_columns(self, row: Row, arriving: Collection[str]) -> dict[Column, str]:
        """Return the columns of a row's cells that do not arrive with it, and why."""
        reasons: dict[Column, str] = {}
        for column, cell in row.cells.items():
            is_off = column.name in ("required", "read_only") and cell.lower() in OFF
            if column.name not in arriving and not is_off:
                reasons[column] = REASONS.get(column.name, "has no counterpart")
            elif column.name in TRANSLATED and (losses := text_of(cell).losses):
                reasons[column] = f"its {' and '.join(sorted(losses))} are left out"
        for name in {column.name for column in row.cells if column.language} & {*arriving}:
            repeated = self._languages.text(row, name)[1]
            reasons |= dict.fromkeys(repeated, "another column has a text in this language")
        return reasons

    def _text(self, row: Row, name: str) -> Text:
        return self._languages.text(row, name)[0]

    def _line(self, row: Row, name: str) -> Text:
        return self._as_line(self._text(row, name))

    def _as_line(self, text: Text) -> Text:
        """Return a text without line breaks and without earlier answers."""

        def line(text: str) -> str:
            return " ".join(REFERENCES.without(text).split())

        return self._map(text, line)

    def _map(self, text: Text, change: Callable[[str], str]) -> Text:
        if isinstance(text, str):
            return change(text)
        return {tag: change(translation) for tag, translation in text.items()}

    def _join(self, texts: Iterable[Text], between: str) -> Text:
        """Return several texts as one, in all their languages."""
        language = self._languages.own_language
        tables = [{language: text} if isinstance(text, str) else text for text in texts if text]
        tags = dict.fromkeys([language, *(tag for table in tables for tag in table)])
        combined = {
            tag: between.join(table.get(tag) or table[language] for table in tables) for tag in tags
        }
        return combined if len(combined) > 1 else combined[language]


OFF = ("no", "false", "false()", "0")
