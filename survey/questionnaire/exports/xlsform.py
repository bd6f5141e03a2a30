"""XLSForm: an Excel file with the sheets survey, choices and settings.

Sources of the format: https://xlsform.org/en/ and https://docs.getodk.org/form-question-types/
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from survey.mechanism.exact_numbers import format_fraction
from survey.questionnaire.definition import Survey, written_questions
from survey.questionnaire.drafts.draft import free_identifier
from survey.questionnaire.exports.assembly import Exported
from survey.questionnaire.imports.markup import text_of
from survey.questionnaire.imports.xlsform_sheets import TRANSLATED, escaped
from survey.questionnaire.kinds.base import (
    EPOCH,
    NOT_APPLICABLE_ID,
    SPECIAL_KEYS,
    Grid,
)
from survey.questionnaire.kinds.question import BaseQuestion
from survey.questionnaire.kinds.scale import point_id
from survey.questionnaire.language_names import language_name
from survey.questionnaire.placeholders import is_piped, parse_piped
from survey.questionnaire.texts import SURVEY_TEXTS
from survey.respondent_texts import label_language, say

ENDING = ".xlsx"
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

WORKBOOK_OPTIONS = {"strings_to_formulas": False, "strings_to_urls": False}

CREATED = datetime(2000, 1, 1)
"""The stated time of creation: the same survey always gives the same bytes."""

Cells = dict[str, str]
"""A row: the text of each cell by its header."""

Versions = Mapping[str, BaseQuestion]
"""A question in each language of its survey, by tag; the survey's own language is the first."""

TRUE_ANSWERS = (
    "XLSForm tools collect true answers: nothing is randomized. The truth probabilities, epsilons "
    "and mechanisms are left out."
)
DECLINING = "No question is required: respondents decline by leaving it unanswered."

LOOKS_LIKE_HTML = "Tools take parts of these texts for HTML, and leave them out"

SETTINGS = (
    *("bucket", "access", "kiosk", "field_until", "theme", "quick_exit", "layout"),
    *("questions_per_person", "together"),
)
"""Keys of a survey without a counterpart."""


def write(survey: Survey) -> Exported:
    """Return a survey as an XLSForm."""
    writer = _Writer(survey)
    sheets = {
        "survey": list(writer.survey_rows()),
        "choices": writer.choices,
        "settings": [writer.settings()],
    }
    for rows in sheets.values():
        writer.report_tags(rows)
    return Exported(_workbook(sheets), ENDING, tuple(writer.notes()), MEDIA_TYPE)


class _Writer:
    """Writes the rows of all sheets, and collects what has no counterpart."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._versions = {survey.language: survey, **survey.translations}
        self._names = {question.id for question in survey.questions}
        self._names |= {q.matrix.id for q in survey.questions if q.matrix}
        self._by_id = {question.id: question for question in survey.questions}
        self._losses: dict[str, list[str]] = {}
        self.choices: list[Cells] = []

    def notes(self) -> Iterator[str]:
        """Yield what the format cannot express."""
        yield TRUE_ANSWERS
        yield DECLINING
        for loss, names in self._losses.items():
            yield f"{loss}: {', '.join(names)}."

    def _lose(self, loss: str, name: str) -> None:
        self._losses.setdefault(loss, []).append(name)

    def report_tags(self, rows: Sequence[Cells]) -> None:
        """Collect the rows with texts in which tools find tags of HTML."""
        for row in rows:
            texts = (
                text for header, text in row.items() if header.partition("::")[0] in TRANSLATED
            )
            if any(text_of(text).text.split() != text.split() for text in texts):
                self._lose(LOOKS_LIKE_HTML, row.get("name") or "title")

    def settings(self) -> Cells:
        """Return the row of settings."""
        fields = type(self._survey).model_fields
        for name in SETTINGS:
            if getattr(self._survey, name) != fields[name].default:
                self._lose("Settings without a counterpart", name)
        title = self._survey.title
        is_whole = not self._survey.translations and escaped(title) == title
        return {
            **({} if is_whole else self._in_languages("survey_title", "title")),
            "form_title": title,
            "form_id": self._survey.slug,
            "default_language": language_name(self._survey.language),
        }

    def survey_rows(self) -> Iterator[Cells]:
        """Yield the rows of the sheet survey."""
        *first, last = (name for name in SURVEY_TEXTS if name != "title")
        for name in first:
            yield from self._note(name)
        for i, page in enumerate(self._survey.pages):
            title = _cells(
                "label", {tag: version.pages[i].title for tag, version in self._versions.items()}
            )
            name = self._free(f"page_{i + 1}")
            yield {"type": "begin_group", "name": name, **title, "appearance": "field-list"}
            question_lists = [
                list(written_questions(survey.pages[i].questions))
                for survey in self._versions.values()
            ]
            for j, _ in enumerate(written_questions(page.questions)):
                rows = zip(*(questions[j] for questions in question_lists), strict=True)
                versions = [dict(zip(self._versions, row, strict=True)) for row in rows]
                yield from self._question(versions)
            yield {"type": "end_group"}
        yield from self._note(last)

    def _free(self, name: str) -> str:
        """Return a name that no element has yet."""
        free = free_identifier(name, self._names)
        self._names.add(free)
        return free

    def _note(self, name: str) -> Iterator[Cells]:
        if getattr(self._survey, name):
            yield {
                "type": "note",
                "name": self._free(name),
                **self._in_languages("label", name),
            }

    def _question(self, rows: Sequence[Versions]) -> Iterator[Cells]:
        """Yield the rows of a question; those of a matrix are a group."""
        versions = rows[0]
        question = next(iter(versions.values()))
        matrix = question.matrix
        self._report(question)
        shared = {
            **_texts("hint", versions, lambda version: version.help),
            "relevant": self._relevant(question),
        }
        if matrix is None:
            yield {
                **self._answers(question.id, versions),
                "name": question.id,
                **_texts("label", versions, lambda version: version.text),
                **shared,
            }
            return
        yield {
            "type": "begin_group",
            "name": matrix.id,
            **_texts(
                "label", versions, lambda version: version.matrix.text if version.matrix else ""
            ),
            **shared,
            "appearance": "table-list",
        }
        select = self._select(matrix.id, "select_one", versions)
        for row in rows:
            yield {
                "type": select["type"],
                "name": next(iter(row.values())).id,
                **_texts(
                    "label", row, lambda version: version.matrix.row if version.matrix else ""
                ),
            }
        yield {"type": "end_group"}

    def _report(self, question: BaseQuestion) -> None:
        """Collect what a question has that no XLSForm can express."""
        name = question.matrix.id if question.matrix else question.id
        if question.topic and not question.matrix:
            self._lose("Topics are left out", name)
        if any(option.picture for option in question.ordinary):
            self._lose("Pictures are left out", name)
        special = [option.id for option in question.special]
        if not question.kind.is_listed and special:
            self._lose("Automatic options are not offered as answers", name)
        if any(is_piped(getattr(question, key)) for key in question.piped_names):
            self._lose("The words for a missing earlier answer are left out", name)
            self._lose("ODK shows the names of options instead of labels as earlier answers", name)

    def _answers(self, name: str, versions: Versions) -> Cells:
        """Return the cells that say how a question is answered."""
        question = next(iter(versions.values()))
        kind, grid = question.kind, question.grid
        if kind.is_numeric and grid:
            return self._number(versions, grid)
        if kind.is_ranking:
            return self._select(name, "rank", versions)
        if kind.is_multiple:
            return self._multiple(name, versions)
        return self._select(name, "select_one", versions)

    def _select(self, name: str, word: str, versions: Versions) -> Cells:
        """Return the cells of a question with options, and write its list of choices."""
        question = next(iter(versions.values()))
        for i, value in enumerate(_values(question)):
            if value in self._left_out(versions):
                continue
            labels = {tag: version.all_options[i].label for tag, version in versions.items()}
            self.choices.append({"list_name": name, "name": value, **_cells("label", labels)})
        shuffle = {"parameters": "randomize=true"} if question.shuffled else {}
        likert = {"appearance": "likert"} if question.kind.is_ordered else {}
        return {"type": f"{word} {name}", **likert, **shuffle}

    def _left_out(self, versions: Versions) -> set[str]:
        """Return the automatic options that are no choices.

        A ranking has none, and a question that is skipped needs no usual "does not apply".
        """
        question = next(iter(versions.values()))
        if question.kind.is_ranking:
            return {option.id for option in question.special}
        usual = all(
            option.label == say(label_language(tag), SPECIAL_KEYS[NOT_APPLICABLE_ID])
            for tag, version in versions.items()
            for option in version.special
            if option.id == NOT_APPLICABLE_ID
        )
        return {NOT_APPLICABLE_ID} if question.ask_if and usual else set()

    def _multiple(self, name: str, versions: Versions) -> Cells:
        question = next(iter(versions.values()))
        left_out = self._left_out(versions)
        alone = [option.id for option in question.special if option.id not in left_out]
        parts = [f"not(selected(., '{id_}') and count-selected(.) > 1)" for id_ in alone]
        if question.ticks < len(question.ordinary):
            parts.insert(0, f"count-selected(.) <= {question.ticks}")
        return {
            **self._select(name, "select_multiple", versions),
            "constraint": " and ".join(parts),
        }

    def _number(self, versions: Versions, grid: Grid) -> Cells:
        """Return the cells of a number or a day."""
        question = next(iter(versions.values()))
        scale = 10**grid.decimals
        last = grid.low + grid.step * (grid.points - 1)
        low, high, step = (
            format_fraction(Fraction(value, scale)) for value in (grid.low, last, grid.step)
        )
        own_step = {} if step == "1" and not grid.decimals else {"survey_step": step}
        if question.kind.is_date:
            first, final = (EPOCH + timedelta(days) for days in (grid.low, last))
            constraint = f". >= date('{first}') and . <= date('{final}')"
            return {"type": "date", "constraint": constraint, **own_step}
        texts = _texts(
            "survey_unit", versions, lambda version: version.grid.unit if version.grid else ""
        )
        if question.slider_labels is None:
            word = "decimal" if grid.decimals else "integer"
            constraint = f". >= {low} and . <= {high}"
            return {"type": word, "constraint": constraint, **own_step, **texts}
        for i, end in enumerate(("low", "high")):
            labels = {
                tag: (version.slider_labels or ("", ""))[i] for tag, version in versions.items()
            }
            texts |= _cells(f"survey_{end}_label", labels)
        return {"type": "range", "parameters": f"start={low} end={high} step={step}", **texts}

    def _relevant(self, question: BaseQuestion) -> str:
        """Return the condition under which a question is asked."""
        if question.ask_if is None:
            return ""
        source = self._by_id[question.ask_if.question]
        ids = [option.id for option in source.all_options]
        value_of = dict(zip(ids, _values(source), strict=True))
        form = "selected(${{{0}}}, '{1}')" if source.kind.is_multiple else "${{{0}}} = '{1}'"
        values = (value_of[id_] for id_ in question.ask_if.options)
        return " or ".join(form.format(source.id, value) for value in values)

    def _in_languages(self, column: str, name: str) -> Cells:
        """Return the cells of a survey's text, one for each language."""
        return _cells(
            column, {tag: getattr(version, name) for tag, version in self._versions.items()}
        )


def _texts(column: str, versions: Versions, text: Callable[[BaseQuestion], str]) -> Cells:
    """Return the cells of a question's text, one for each language."""
    return _cells(column, {tag: text(version) for tag, version in versions.items()})


def _cells(column: str, texts: Mapping[str, str]) -> Cells:
    return {
        f"{column}::{language_name(tag)}": escaped(_with_references(text))
        for tag, text in texts.items()
        if text
    }


def _values(question: BaseQuestion) -> list[str]:
    """Return the name of each choice: a number's own on a numbered scale, else the option's id."""
    numbers = question.grid.values if question.grid else ()
    ids = [option.id for option in question.all_options]
    points = [point_id(int(number)) for number in numbers]
    if ids[: len(points)] != points:
        return ids
    return [*(str(int(number)) for number in numbers), *ids[len(points) :]]


def _with_references(text: str) -> str:
    """Return a text with references to earlier answers as XLSForm writes them.

    >>> _with_references("At {job|your work} {{now}}?"), _with_references("It costs ${x}")
    ('At ${job} {now}?', 'It costs $ {x}')
    """
    if not is_piped(text):
        return text.replace("${", "$ {")
    parts = (
        part.replace("${", "$ {") if isinstance(part, str) else f"${{{part.question}}}"
        for part in parse_piped(text)
    )
    return "".join(parts)


COLUMNS = (
    *("type", "list_name", "name", "label", "form_title", "form_id", "default_language"),
    *("hint", "relevant", "appearance", "constraint", "parameters"),
)
"""Names of columns, in their order in a sheet; others follow."""


def _workbook(sheets: Mapping[str, Sequence[Cells]]) -> bytes:
    """Return an Excel file in which every cell is a text."""
    import xlsxwriter

    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, **WORKBOOK_OPTIONS}) as book:
        book.set_properties({"created": CREATED})
        bold = book.add_format({"bold": True})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            headers = dict.fromkeys(header for row in rows for header, text in row.items() if text)
            for i, header in enumerate(sorted(headers, key=_place)):
                sheet.write_string(0, i, header, bold)
                for number, row in enumerate(rows, 1):
                    if text := row.get(header):
                        sheet.write_string(number, i, text)
            sheet.freeze_panes(1, 0)
            sheet.set_column(0, len(headers), 24)
    return file.getvalue()


def _place(header: str) -> int:
    name = header.partition("::")[0]
    return COLUMNS.index(name) if name in COLUMNS else len(COLUMNS)
