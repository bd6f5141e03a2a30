"""A survey during its import from another tool, and the report on each element."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from survey.questionnaire.drafts.check import DraftCheck, check_draft
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.drafts.draft import (
    AUTOMATIC,
    DraftContent,
    free_identifier,
    identifier,
    slug,
)
from survey.questionnaire.error_messages import refusal, shortened
from survey.questionnaire.imports.earlier_answers import MISSING, References
from survey.questionnaire.imports.markup import Text
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.kinds.matrix import MAX_ROWS, joined_text
from survey.questionnaire.placeholders import PIPED_TEXTS
from survey.questionnaire.texts import Identifier
from survey.settings import Caps

Outcome = Literal["kept", "changed", "dropped"]

Form = dict[str, Any]

MAX_IMPORTED = 1_000
"""Maximum number of questions of a file, and of options or rows of a question.

It is above what can be published, so that a draft can show what is too much.
"""

REQUIRED = "no question can be required: everybody may decline to answer"
UNBOUNDED = "has no lowest and highest value, which a device needs to randomize it"


@dataclass(frozen=True)
class Element:
    """What became of an element: `how` it changed, or why it was dropped; "" if it was kept."""

    name: str
    kind: str
    outcome: Outcome
    how: str = ""

    def __str__(self) -> str:
        reason = f": {self.how}" if self.how else ""
        return f"{self.outcome}  {self.name} ({self.kind}){reason}"


@dataclass(frozen=True)
class Imported:
    """A draft with the report on each element of the file it was made from."""

    content: DraftContent
    elements: tuple[Element, ...]

    def check(self, caps: Caps) -> DraftCheck:
        """Return the draft's mistakes and privacy loss."""
        return check_draft(self.content, caps)

    def definition(self, caps: Caps) -> Form:
        """Return the draft as a definition file, asking as many questions as privacy allows."""
        draws = self.check(caps).draws
        form = definition_from(self.content)
        return form | ({"questions_per_person": draws} if draws else {})


@dataclass(frozen=True)
class Condition:
    """Ask a question only if an earlier one has one of these answers, as the file names them.

    is_exact   whether it asks that all of these options are ticked, or no others
    is_absent  whether it asks that options are not ticked
    """

    source: str
    accepts: Callable[[Any], bool]
    is_exact: bool = False
    is_absent: bool = False


class Assembly:
    """A survey during an import: pages, unique ids, and the report."""

    def __init__(self, language: str, *, skip_logic: bool, references: References) -> None:
        self.language, self.skip_logic = language, skip_logic
        self._references = references
        self.texts: dict[str, Text] = {}
        self.settings: Form = {}
        self.elements: list[Element] = []
        self.pages: list[tuple[Text, list[Form]]] = []
        self.together: list[set[str]] = []
        self._ids: set[str] = set()
        self._answers: dict[str, tuple[Form, dict[str, Any]]] = {}
        self._conditions: dict[str, tuple[str, Condition]] = {}
        self._answered: dict[str, str] = {}
        """The ids of questions with one answer, by their names in the file."""
        self._shown: dict[str, tuple[str, set[str]]] = {}
        """By the id of a question: its name, and the ids of the answers that its texts show."""

    def drop_if_too_long(self, name: str, kind: str, *numbers: int) -> bool:
        """Report and return whether a question has too many options or rows."""
        if max(numbers) <= MAX_IMPORTED:
            return False
        self.drop(
            name, kind, f"has {max(numbers):,} options; at most {MAX_IMPORTED:,} are imported"
        )
        return True

    def keep(self, name: str, kind: str) -> None:
        """Report an element that arrives unchanged."""
        self._report(name, kind, "kept")

    def change(self, name: str, kind: str, how: str) -> None:
        """Report an element that arrives in another form."""
        self._report(name, kind, "changed", how)

    def drop(self, name: str, kind: str, why: str) -> None:
        """Report an element that does not arrive."""
        self._report(name, kind, "dropped", why)

    def _report(self, name: str, kind: str, outcome: Outcome, how: str = "") -> None:
        self.elements.append(Element(shortened(name), shortened(kind), outcome, how))

    def add_page(self, title: Text = "") -> None:
        """Begin a page."""
        self.pages.append((title, []))

    def add(
        self,
        name: str,
        kind: str,
        question: Form,
        *,
        values: Mapping[str, Any] | None = None,
        changes: Sequence[str] = (),
        condition: Condition | None = None,
    ) -> str:
        """Add a question to the last page, report it, and return its id.

        `name` is its name in the file, `values` are the values of its options in the file, by the
        options' ids. Its text and help can refer to earlier answers.
        """
        base = own_identifier(name) or "question"
        question, sources, shown_changes = self._with_answers(question)
        changes = [*changes, *shown_changes]
        added = {"id": free_identifier(base, self._ids), **question}
        self._ids.add(added["id"])
        if len(self._ids) > MAX_IMPORTED:
            raise refusal([("", f"the file has more than {MAX_IMPORTED:,} questions")])
        self.pages[-1][1].append(added)
        self._answers[name] = added, dict(values or {})
        if sources:
            self._shown[added["id"]] = name, sources
            self.ask_together([added["id"], *sources])
        kind_of_question = WRITTEN_KINDS[question["type"]]
        if not (kind_of_question.is_multiple or kind_of_question.is_matrix):
            self._answered[name] = added["id"]
        if condition is not None:
            if self.skip_logic:
                self._conditions[added["id"]] = name, condition
            else:
                self.drop(
                    name, "condition", "skip logic is not switched on; everybody is asked this"
                )
        if changes:
            self.change(name, kind, "; ".join(changes))
        else:
            self.keep(name, kind)
        return str(added["id"])

    def _with_answers(self, question: Form) -> tuple[Form, set[str], list[str]]:
        """Return a question that shows earlier answers, their ids, and what the report says."""
        is_possible = self.skip_logic and not WRITTEN_KINDS[question["type"]].is_matrix
        changed, names, notes = dict(question), set[str](), set[str]()
        for key in PIPED_TEXTS:
            if not (text := question.get(key)):
                continue
            shown = self._references.shown(text, self._answered if is_possible else {})
            changed[key] = shown.text
            names |= shown.names
            labelled = frozenset(name for name in shown.names if self._has_labels(name))
            notes |= shown.left_out | self._references.notes(text, labelled)
        ids = {self._answered[name] for name in names}
        return changed, ids, [*([MISSING] if ids else []), *sorted(notes)]

    def _has_labels(self, name: str) -> bool:
        return not WRITTEN_KINDS[self._answers[name][0]["type"]].is_numeric

    def add_rows(self, matrix: str, rows: Mapping[str, str], values: Mapping[str, Any]) -> None:
        """Let conditions depend on the rows of a matrix: their ids by their names in the file."""
        for name, row in rows.items():
            self._answers[name] = {"id": f"{matrix}_{row}"}, dict(values)

    def ask_together(self, ids: Iterable[str]) -> None:
        """Ask each respondent all of these questions or none."""
        combined = set(ids)
        for group in [group for group in self.together if group & combined]:
            self.together.remove(group)
            combined |= group
        self.together.append(combined)

    def finish(self) -> Imported:
        """Return the survey; raises DefinitionError if no question arrived."""
        pages = [(title, questions) for title, questions in self.pages if questions]
        if not pages:
            reasons = [
                (element.name, f"{element.kind}: {element.how}") for element in self.elements
            ]
            raise refusal([("", "the file has no question that can be randomized"), *reasons])
        pages = list(self._with_conditions(pages))
        title = self.texts.get("title") or "Imported survey"
        title_text = title if isinstance(title, str) else title[self.language]
        definition: Form = {
            "slug": slug(title_text),
            "language": self.language,
            **self.texts,
            **self.settings,
            "title": title,
            **({"allow_skip_logic": True} if self.skip_logic else {}),
            "together": [{"questions": sorted(ids)} for ids in self.together],
            "pages": [{"title": title, "questions": questions} for title, questions in pages],
        }
        content = draft_from(definition)
        survey = {**content.survey, "questions_per_person": AUTOMATIC}
        return Imported(replace(content, survey=survey), tuple(self.elements))

    def _with_conditions(
        self, pages: Iterable[tuple[Text, list[Form]]]
    ) -> Iterable[tuple[Text, list[Form]]]:
        """Yield the pages, divided where a question needs the answer to another one of its page."""
        earlier: set[str] = set()
        for title, questions in pages:
            current: list[Form] = []
            for question in questions:
                depends = self._ask_if(question, earlier, _ids(current))
                if self._shows(question, _ids(current)) or depends:
                    yield title, current
                    earlier |= _ids(current)
                    current = []
                current.append(question)
            yield title, current
            earlier |= _ids(current)

    def _shows(self, question: Form, current: set[str]) -> bool:
        """Return whether a question shows an answer from the same page; report its new page."""
        name, sources = self._shown.get(question["id"], ("", set()))
        if not sources & current:
            return False
        self.change(name, "text", "was moved to a page after the question whose answer it shows")
        return True

    def _ask_if(self, question: Form, earlier: set[str], current: set[str]) -> bool:
        """Give a question its condition, or report why not; return whether it needs a new page."""
        if question["id"] not in self._conditions:
            return False
        name, condition = self._conditions[question["id"]]
        source, values = self._answers.get(condition.source, ({"id": ""}, {}))
        options = [id_ for id_, value in values.items() if condition.accepts(value)]
        is_multiple = "type" in source and WRITTEN_KINDS[source["type"]].is_multiple
        if is_multiple and condition.is_absent:
            why = "depends on options that are not ticked; everybody is asked this"
            self.drop(name, "condition", why)
            return False
        if not options or source["id"] not in earlier | current:
            why = "depends on something other than the options of one earlier question"
            self.drop(name, "condition", f"{why}; everybody is asked this")
            return False
        question["ask_if"] = {"question": source["id"], "options": options}
        if is_multiple and condition.is_exact:
            self.change(name, "condition", "is true if any of its options is ticked")
        if source["id"] in current:
            self.change(name, "condition", "is on a page after the question it depends on")
        return source["id"] in current


def _ids(questions: Sequence[Form]) -> set[str]:
    """Return the ids of questions, and of the rows of matrices."""
    rows = (
        f"{question['id']}_{row['id']}"
        for question in questions
        for row in question.get("rows", ())
    )
    return {question["id"] for question in questions} | set(rows)


def listed_options(labels: Iterable[tuple[Any, Text]]) -> tuple[list[Form], dict[str, Any]]:
    """Return options with unique ids for values and labels, and the values by id.

    >>> listed_options([("a b", "A"), (1, "One")])
    ([{'id': 'a_b', 'label': 'A'}, {'id': 'o1', 'label': 'One'}], {'a_b': 'a b', 'o1': 1})
    """
    options: list[Form] = []
    values: dict[str, Any] = {}
    for value, label in labels:
        name = free_identifier(own_identifier(str(value)) or "option", values)
        options.append({"id": name, "label": label})
        values[name] = value
    return options, values


_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


def own_identifier(name: str) -> str:
    """Return a name unchanged if it can be an id, else an id made from it; "" if none can be.

    >>> own_identifier("at_work_"), own_identifier("At work?")
    ('at_work_', 'at_work')
    """
    try:
        return _IDENTIFIER.validate_python(name)
    except ValidationError:
        return identifier(name)


def divided(rows: Sequence[Form]) -> list[list[Form]]:
    """Return the rows of as many matrices as they need, none with a single row if possible."""
    parts = [list(rows[start : start + MAX_ROWS]) for start in range(0, len(rows), MAX_ROWS)]
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-1].insert(0, parts[-2].pop())
    return parts


def division(parts: Sequence[object]) -> list[str]:
    """Return what the report says about a matrix in several parts."""
    return [f"is divided into {len(parts)}, of at most {MAX_ROWS} rows"] if parts[1:] else []


def matrix_forms(
    text: Text, rows: Sequence[Form], scale: Form, language: str
) -> Iterator[tuple[Form, list[str]]]:
    """Yield the matrices of rows with ids and labels, and what changed: long ones are divided.

    A single row becomes a scale with the joined text of both.
    """
    parts = divided([{"id": row["id"], "text": row["label"]} for row in rows])
    changes = division(parts)
    for part in parts:
        if len(part) == 1:
            combined = joined_texts(text, part[0]["text"], language)
            yield {"type": "scale", "text": combined, **scale}, ["a matrix of one row is a scale"]
        else:
            yield {"type": "matrix", "text": text, **scale, "rows": part}, changes


def joined_texts(
    text: Text, part: Text, language: str, join: Callable[[str, str], str] = joined_text
) -> Text:
    """Return two texts as one, in all their languages; `language` is the survey's own."""
    tables = [{language: value} if isinstance(value, str) else value for value in (text, part)]
    first, second = tables
    combined = {
        tag: join(first.get(tag) or first[language], second.get(tag) or second[language])
        for tag in {**first, **second}
    }
    return combined if len(combined) > 1 else combined[language]


def language_tag(locale: str) -> str:
    """Return a locale as a language tag; "" if it is none.

    >>> language_tag("pt-br"), language_tag("zh_CN"), language_tag("zh-hant"), language_tag("x")
    ('pt-BR', 'zh-CN', 'zh-Hant', '')
    """
    pattern = r"([a-zA-Z]{2,3})(?:[-_]([a-zA-Z]{4}))?(?:[-_]([a-zA-Z]{2}|[0-9]{3}))?"
    match = re.fullmatch(pattern, locale)
    if match is None:
        return ""
    script, region = (match[2] or "").capitalize(), (match[3] or "").upper()
    return "-".join(filter(None, (match[1].lower(), script, region)))


def comparison(operator: str, values: Sequence[str]) -> Callable[[Any], bool]:
    """Return whether an answer fulfils a comparison with these values."""
    if operator in ("==", "=", "equal", "contains", "anyof"):
        return lambda answer: _word(answer) in values
    if operator in ("<>", "!="):
        return lambda answer: _word(answer) not in values
    return lambda answer: _is_ordered(operator, answer, values[0])


def _is_ordered(operator: str, answer: Any, limit: str) -> bool:
    try:
        number, bound = float(answer), float(limit)
    except (TypeError, ValueError):
        return False
    return {
        "<=": number <= bound,
        ">=": number >= bound,
        "<": number < bound,
        ">": number > bound,
    }[operator]


def _word(answer: Any) -> str:
    """Return an answer as conditions write it: true, 5, item1."""
    return str(answer).lower() if isinstance(answer, bool) else str(answer)
