"""The files of LimeSurvey: tables in XML (.lss), and tab-separated values (.txt, .tsv).

Version 4 moved the texts of groups, questions and answers to tables of their own, whose names end
in "_l10ns"; earlier versions repeat each row for each language. Sources:
https://www.limesurvey.org/manual/Tab_Separated_Value_survey_structure and the import of
https://github.com/LimeSurvey/LimeSurvey (application/helpers/admin/import_helper.php).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError

from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.loading import MAX_FILE_BYTES

MAX_ROWS = 50_000
"""Maximum number of rows in a file; a survey of 500 questions in ten languages has fewer."""

MAX_XML_DEPTH = 10
"""Maximum depth of a file's elements; LimeSurvey writes 5."""

MAX_CELLS = 500_000
"""Maximum number of values in a file."""

Row = Mapping[str, str]
"""A row of a table, without empty values."""

Localized = dict[str, str]
"""A text by the language that the file names; "" if a text is not about a language."""


@dataclass
class Entry:
    """A subquestion or an answer; `scale` is 1 for the second set of a question with two."""

    code: str
    scale: int = 0
    texts: Localized = field(default_factory=dict)
    relevance: str = ""


@dataclass
class LimeQuestion:
    """A question with its subquestions, answers and attributes."""

    code: str
    type: str
    settings: Row
    texts: Localized = field(default_factory=dict)
    help: Localized = field(default_factory=dict)
    attributes: dict[str, Localized] = field(default_factory=dict)
    subquestions: list[Entry] = field(default_factory=list)
    answers: list[Entry] = field(default_factory=list)
    conditions: list[Row] = field(default_factory=list)
    has_default: bool = False


@dataclass
class LimeGroup:
    """A group of questions."""

    names: Localized = field(default_factory=dict)
    descriptions: Localized = field(default_factory=dict)
    relevance: str = ""
    randomization: str = ""
    questions: list[LimeQuestion] = field(default_factory=list)


@dataclass
class LimeSurvey:
    """A survey; `ignored` counts rows that describe no question, by what they describe."""

    language: str
    settings: Row
    texts: dict[str, Localized]
    groups: list[LimeGroup]
    codes: Row = field(default_factory=dict)
    """The codes of questions by the ids with which conditions and old equations name them."""

    ignored: Counter[str] = field(default_factory=Counter)


def parse_file(content: bytes, name: str) -> LimeSurvey:
    """Parse a file by the ending of its name; raises DefinitionError."""
    if len(content) > MAX_FILE_BYTES:
        raise refusal([(shortened(name), f"is larger than {MAX_FILE_BYTES:,} bytes")])
    if name.lower().endswith(".lss"):
        return _from_tables(_parse_tables(content, name), name)
    return _from_rows(_parse_rows(content, name), name)


# XML


class _TableTarget:
    """Collects the rows of tables while a parser reads them, and keeps no tree.

    Raises DefinitionError for a file that is nested too deeply or has too many rows.
    """

    def __init__(self, name: str) -> None:
        self.tables: dict[str, list[Row]] = {}
        self.languages: list[str] = []
        self._name = name
        self._path: list[str] = []
        self._text: list[str] = []
        self._row: dict[str, str] = {}
        self._n_rows = self._n_cells = 0

    def start(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._path.append(tag)
        self._text = []
        self._n_cells += 1
        if len(self._path) > MAX_XML_DEPTH:
            raise refusal([(shortened(self._name), "is nested too deeply")])
        if self._n_cells > MAX_CELLS:
            raise refusal([(shortened(self._name), f"has more than {MAX_CELLS:,} elements")])

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, tag: str) -> None:
        # document, table, rows, row, column
        match self._path:
            case [_, "languages", "language"]:
                self.languages.append("".join(self._text).strip())
            case [_, _, "rows", "row", _]:
                if text := "".join(self._text).strip():
                    self._row[tag] = text
            case [_, table, "rows", "row"]:
                self._n_rows += 1
                if self._n_rows > MAX_ROWS:
                    raise refusal([(shortened(self._name), f"has more than {MAX_ROWS:,} rows")])
                self.tables.setdefault(table, []).append(self._row)
                self._row = {}
        self._path.pop()
        self._text = []

    def close(self) -> _TableTarget:
        return self


def _parse_tables(content: bytes, name: str) -> dict[str, list[Row]]:
    """Return the rows of each table; without DTD, entities or external references."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import XMLParser

    target = _TableTarget(name)
    try:
        parser = XMLParser(target=target, forbid_dtd=True)
        parser.feed(content)
        parser.close()
    except DefusedXmlException:
        why = "declares a document type or entities, which LimeSurvey does not do"
        raise refusal([(shortened(name), why)]) from None
    except (ParseError, ValueError, LookupError) as error:
        line = error.position[0] if isinstance(error, ParseError) else None
        raise refusal([(shortened(name), f"cannot be parsed: {error}")], line=line) from None
    if target.languages:
        target.tables["languages"] = [{"language": tag} for tag in target.languages]
    return target.tables


def _from_tables(tables: Mapping[str, list[Row]], name: str) -> LimeSurvey:
    if not tables.get("questions"):
        raise refusal([(shortened(name), "is not a survey of LimeSurvey: it has no questions")])
    settings = next(iter(tables.get("surveys", ())), {})
    listed = [row["language"] for row in tables.get("languages", ())]
    language = settings.get("language") or next(iter(listed), "en")
    texts: dict[str, Localized] = {}
    for row in tables.get("surveys_languagesettings", ()):
        for key, value in row.items():
            translations = texts.setdefault(key.removeprefix("surveyls_"), {})
            translations.setdefault(row.get("surveyls_language", language), value)
    groups = _groups(tables)
    questions = _questions(tables, groups)
    _add_parts(tables, questions)
    codes = {qid: question.code for qid, question in questions.items()}
    survey = LimeSurvey(language, settings, texts, list(groups.values()), codes)
    survey.ignored = Counter(
        {table: len(rows) for table, rows in tables.items() if table not in READ_TABLES}
    )
    return survey


READ_TABLES = frozenset(
    (
        *("surveys", "surveys_languagesettings", "groups", "group_l10ns", "languages"),
        *("questions", "question_l10ns", "subquestions", "answers", "answer_l10ns"),
        *("question_attributes", "conditions", "defaultvalues", "defaultvalue_l10ns"),
        *("themes", "themes_inherited", "fields"),
    )
)
"""Tables whose rows are read, or describe only the look of the pages."""


def _ordered(rows: Iterable[Row], key: str) -> list[Row]:
    """Return rows in the order that they state; rows without a number come first."""
    return sorted(rows, key=lambda row: _whole(row.get(key, "")))


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _groups(tables: Mapping[str, list[Row]]) -> dict[str, LimeGroup]:
    groups: dict[str, LimeGroup] = {}
    rows = _ordered(tables.get("groups", ()), "group_order")
    for row in [*rows, *tables.get("group_l10ns", ())]:
        group = groups.setdefault(row.get("gid", ""), LimeGroup())
        group.relevance = group.relevance or row.get("grelevance", "")
        group.randomization = group.randomization or row.get("randomization_group", "")
        _localize(group.names, row, "group_name")
        _localize(group.descriptions, row, "description")
    return groups


def _questions(
    tables: Mapping[str, list[Row]], groups: dict[str, LimeGroup]
) -> dict[str, LimeQuestion]:
    """Return the questions by id, and add them to their groups."""
    questions: dict[str, LimeQuestion] = {}
    rows = [row for row in tables["questions"] if row.get("parent_qid", "0") == "0"]
    for row in _ordered(rows, "question_order"):
        qid = row.get("qid", "")
        if qid not in questions:
            code = row.get("title") or f"question{qid}"
            questions[qid] = LimeQuestion(code, row.get("type", ""), row)
            groups.setdefault(row.get("gid", ""), LimeGroup()).questions.append(questions[qid])
        _localize(questions[qid].texts, row, "question")
        _localize(questions[qid].help, row, "help")
    for row in tables.get("question_l10ns", ()):
        if question := questions.get(row.get("qid", "")):
            _localize(question.texts, row, "question")
            _localize(question.help, row, "help")
    return questions


def _add_parts(tables: Mapping[str, list[Row]], questions: Mapping[str, LimeQuestion]) -> None:
    """Add subquestions, answers, attributes, default answers and conditions."""
    parts = [row for row in tables["questions"] if row.get("parent_qid", "0") != "0"]
    parts = _ordered([*parts, *tables.get("subquestions", ())], "question_order")
    texts = _texts_by(tables.get("question_l10ns", ()), "qid")
    _add_entries(
        questions, parts, lambda question: question.subquestions, "parent_qid", "title", texts
    )
    answers = _ordered(tables.get("answers", ()), "sortorder")
    texts = _texts_by(tables.get("answer_l10ns", ()), "aid")
    _add_entries(questions, answers, lambda question: question.answers, "qid", "code", texts)
    for row in tables.get("question_attributes", ()):
        question, value = questions.get(row.get("qid", "")), row.get("value", "")
        if question and value and row.get("attribute"):
            translations = question.attributes.setdefault(row["attribute"], {})
            translations.setdefault(row.get("language", ""), value)
    for row in tables.get("defaultvalues", ()):
        if question := questions.get(row.get("qid", "")):
            question.has_default = True
    for row in tables.get("conditions", ()):
        if question := questions.get(row.get("qid", "")):
            question.conditions.append(row)


def _texts_by(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    by_id: dict[str, list[Row]] = {}
    for row in rows:
        by_id.setdefault(row.get(key, ""), []).append(row)
    return by_id


def _add_entries(
    questions: Mapping[str, LimeQuestion],
    rows: Iterable[Row],
    part: Callable[[LimeQuestion], list[Entry]],
    parent: str,
    code: str,
    texts: Mapping[str, list[Row]],
) -> None:
    """Add the rows of subquestions or answers to their questions, once for all languages."""
    existing: dict[tuple[str, str, int], Entry] = {}
    for row in rows:
        question = questions.get(row.get(parent, ""))
        if question is None:
            continue
        scale = _whole(row.get("scale_id", ""))
        key = row[parent], row.get(code, ""), scale
        if key not in existing:
            existing[key] = Entry(key[1], scale, relevance=row.get("relevance", ""))
            part(question).append(existing[key])
        own_id = row.get("qid" if code == "title" else "aid", "")
        for text in [row, *texts.get(own_id, ())]:
            _localize(existing[key].texts, text, "question" if code == "title" else "answer")


def _localize(texts: Localized, row: Row, key: str) -> None:
    if row.get(key):
        texts.setdefault(row.get("language", ""), row[key])


# Tab-separated values


def _parse_rows(content: bytes, name: str) -> list[Row]:
    """Return the rows of a file with tab-separated values, by the names in its first row."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refusal([(shortened(name), f"is not UTF-8 text (byte {error.start})")]) from None
    rows: list[Row] = []
    n_cells, begin = 0, 1
    lines = csv.reader(io.StringIO(text.replace("\0", "")), delimiter="\t", strict=True)
    try:
        columns = [column.strip() for column in next(lines, [])]
        if not {"class", "type/scale", "name", "text"} <= set(columns):
            why = "is not a survey of LimeSurvey: its first row must name class, type/scale, name"
            raise refusal([(shortened(name), f"{why} and text")])
        begin = lines.line_num + 1
        for line in lines:
            begin = lines.line_num + 1
            n_cells += len(line)
            if len(rows) >= MAX_ROWS or n_cells > MAX_CELLS * 10:
                raise refusal([(shortened(name), f"has more than {MAX_ROWS:,} rows")])
            pairs = zip(columns, line, strict=False)
            rows.append({column: value.strip() for column, value in pairs if value.strip()})
    except csv.Error as error:
        why = f"has a mistake in the row that begins on line {begin}, such as a quote without end"
        raise refusal([(shortened(name), f"{why}: {error}")], line=begin) from None
    return rows


QUESTION_COLUMNS = frozenset(
    (
        *("id", "related_id", "class", "type/scale", "name", "relevance", "text", "help"),
        *("language", "validation", "mandatory", "encrypted", "other", "default"),
        *("same_default", "same_script"),
    )
)
"""The columns of a question that are no attributes."""

IGNORED_CLASSES = {
    "AS": "assessments",
    **dict.fromkeys(("QTA", "QTALS", "QTAM"), "quota"),
}
"""Rows that describe no question, by their class."""


def _from_rows(rows: Sequence[Row], name: str) -> LimeSurvey:
    settings = {row.get("name", ""): row.get("text", "") for row in rows if row.get("class") == "S"}
    first = next((row["language"] for row in rows if row.get("language")), "en")
    reader = _RowReader(LimeSurvey(settings.get("language") or first, settings, {}, []))
    for row in rows:
        reader.add(row)
    if not reader.questions:
        raise refusal([(shortened(name), "is not a survey of LimeSurvey: it has no questions")])
    return reader.survey


class _RowReader:
    """Reads rows in their order: each belongs to the group or the question before it.

    Rows are repeated for each language. A group is the same in two languages if its place is, a
    question if its code is. The same code again in one language is another question.
    """

    def __init__(self, survey: LimeSurvey) -> None:
        self.survey = survey
        self.questions: dict[tuple[str, int], LimeQuestion] = {}
        self._n_groups: Counter[str] = Counter()
        self._n_questions: Counter[tuple[str, str]] = Counter()
        self._entries: dict[tuple[int, str, str, str], Entry] = {}
        self._group: LimeGroup | None = None
        self._question: LimeQuestion | None = None

    def add(self, row: Row) -> None:
        """Add a row by its class."""
        class_, tag = row.get("class", ""), row.get("language", self.survey.language)
        if class_ == "SL":
            texts = self.survey.texts.setdefault(row.get("name", "").removeprefix("surveyls_"), {})
            texts.setdefault(tag, row.get("text", ""))
        elif class_ == "G":
            self._add_group(row, tag)
        elif class_ == "Q":
            self._add_question(row, tag)
        elif class_ in ("SQ", "A") and self._question:
            self._add_entry(self._question, row, tag)
        elif class_ not in ("S", "C"):  # the equations in the rows of questions contain conditions
            self.survey.ignored[IGNORED_CLASSES.get(class_, f"class {shortened(class_)}")] += 1

    def _add_group(self, row: Row, tag: str) -> None:
        place = self._n_groups[tag]
        self._n_groups[tag] += 1
        if place == len(self.survey.groups):
            self.survey.groups.append(LimeGroup(relevance=row.get("relevance", "")))
        self._group = self.survey.groups[place]
        self._group.names.setdefault(tag, row.get("name", ""))
        self._group.descriptions.setdefault(tag, row.get("text", ""))

    def _add_question(self, row: Row, tag: str) -> None:
        code = row.get("name", "question")
        self._n_questions[tag, code] += 1
        key = code, self._n_questions[tag, code]
        if key not in self.questions:
            if self._group is None:
                self._add_group({}, tag)
            settings = {**row, "preg": row.get("validation", "")}
            question = LimeQuestion(code, row.get("type/scale", ""), settings)
            self.questions[key] = question
            (self._group or self.survey.groups[-1]).questions.append(question)
        self._question = self.questions[key]
        _add_texts(self._question, row, tag)

    def _add_entry(self, question: LimeQuestion, row: Row, tag: str) -> None:
        """Add a subquestion or an answer."""
        class_, code, scale = row["class"], row.get("name", ""), row.get("type/scale", "")
        key = id(question), class_, scale, code
        if key not in self._entries:
            self._entries[key] = Entry(code, _whole(scale), relevance=row.get("relevance", ""))
            part = question.answers if class_ == "A" else question.subquestions
            part.append(self._entries[key])
        question.has_default |= "default" in row
        self._entries[key].texts.setdefault(tag, row.get("text", ""))


def _add_texts(question: LimeQuestion, row: Row, tag: str) -> None:
    """Add the texts and attributes of a question in one language."""
    question.has_default |= "default" in row
    question.texts.setdefault(tag, row.get("text", ""))
    question.help.setdefault(tag, row.get("help", ""))
    for column, value in row.items():
        if column not in QUESTION_COLUMNS:
            question.attributes.setdefault(column, {}).setdefault(tag, value)
