"""Forms of the builder: fields for the parts of a draft, and the values that were sent in them.

A draft may be wrong while it is edited, so these fields refuse only what is too long to store;
`survey.questionnaire.drafts.check` says what has to change before publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask_wtf import FlaskForm
from wtforms import (
    BooleanField,
    Field,
    FieldList,
    Form,
    FormField,
    HiddenField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
    StringField,
    SubmitField,
    TextAreaField,
)
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange
from wtforms.widgets import CheckboxInput, DateInput, ListWidget

from survey.collect.simulation import MAX_SIMULATED
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.drafts.check import Examined
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.drafts.edits import Values
from survey.questionnaire.drafts.messages import FIELD_NAMES, MECHANISM_NAMES, WAY_NAMES
from survey.questionnaire.kinds import KINDS, kind_of
from survey.research.forms import WholeNumberField, whole_number

LINE, PASSAGE = Length(max=1_000), Length(max=12_000)
"""Longer than what may be published, so that what is too long is said and not lost."""

TYPE_NAMES: Mapping[str, str] = {name: kind.label for name, kind in KINDS.items()}
"""The names of the question types in the builder."""


def choices(names: Mapping[str, str]) -> list[SelectChoice]:
    """What a select offers: values and what they are called."""
    return [SelectChoice(value, label) for value, label in names.items()]


class NewDraftForm(FlaskForm):  # type: ignore[misc]
    """A title to begin with."""

    title = StringField(
        "Title", [DataRequired("Enter a title; you can change it later"), Length(max=300)]
    )
    submit = SubmitField("Create draft")


class DoForm(FlaskForm):  # type: ignore[misc]
    """One of the buttons of the outline."""


class SheetForm(FlaskForm):  # type: ignore[misc]
    """What all sheets send along: the revision they were opened at."""

    revision = HiddenField()


class OptionForm(Form):  # type: ignore[misc]
    """One option; its number is empty while it is new."""

    key = HiddenField()
    label = StringField("Answer", [LINE])
    id = StringField("Id in downloads", [LINE])


class QuestionForm(SheetForm):
    """Everything a question of any type has; `for_type` leaves what its own has."""

    text = TextAreaField("Question", [PASSAGE])
    help = TextAreaField("Help below the question", [PASSAGE])
    id = StringField("Id in downloads", [LINE])
    type = SelectField("Type", choices=choices(TYPE_NAMES))
    options = FieldList(FormField(OptionForm))
    low = StringField(FIELD_NAMES["low"], [LINE])
    high = StringField(FIELD_NAMES["high"], [LINE])
    step = StringField(FIELD_NAMES["step"], [LINE])
    unit = StringField("Unit", [LINE])
    low_label = StringField(FIELD_NAMES["low_label"], [LINE])
    high_label = StringField(FIELD_NAMES["high_label"], [LINE])
    max_ticks = StringField("Maximum number of answers", [LINE])
    shuffle_options = BooleanField("Randomize answer order")
    prefer_not_to_say = BooleanField(FIELD_NAMES["prefer_not_to_say"])
    prefer_not_to_say_label = StringField("Wording of “Prefer not to say”", [LINE])
    does_not_apply = BooleanField(FIELD_NAMES["does_not_apply"])
    does_not_apply_label = StringField("Wording of “Does not apply”", [LINE])
    none_of_these_label = StringField("Wording of “None of these”", [LINE])
    ask_question = SelectField("Ask only after this question", validate_choice=False)
    ask_options = SelectMultipleField(
        "if the answer was one of",
        widget=ListWidget(prefix_label=False),
        option_widget=CheckboxInput(),
        validate_choice=False,
    )
    way = SelectField(FIELD_NAMES["way"], validate_choice=False)
    value = StringField("Value", [LINE])
    mechanism = SelectField("Mechanism", validate_choice=False)
    parameters = TextAreaField(FIELD_NAMES["parameters"], [PASSAGE])

    def for_type(self, name: str) -> QuestionForm:
        """Without the fields of other types; the choices are those of this one."""
        self.kind = kind = KINDS[name]
        other_fields = {field for other in KINDS.values() for field in other.fields}
        for field in other_fields - set(kind.fields):
            del self[field]
        mechanisms = {name: MECHANISM_NAMES[name] for name in kind.mechanisms}
        self.mechanism.choices = choices({"": "Standard", **mechanisms})
        design = DESIGNS.get(self.mechanism.data or "") or DESIGNS[kind.mechanism]
        ways = [way for way in PRIVACY if way in design.ways]
        if self.way.data not in PRIVACY:
            self.way.data = ""
        elif self.way.data not in ways:
            ways.append(self.way.data)
        self.way.choices = choices({way: WAY_NAMES.get(way, way) for way in ("", *ways)})
        return self


class SurveyForm(SheetForm):
    """Texts and settings of the whole survey."""

    title = StringField("Title", [LINE])
    slug = StringField("Short name in the address", [LINE])
    introduction = TextAreaField("Introduction", [PASSAGE])
    consent = TextAreaField("Consent", [PASSAGE])
    ethics = TextAreaField("Ethics approval", [PASSAGE])
    helpline = TextAreaField("Where to find help", [PASSAGE])
    contact = TextAreaField("Contact", [PASSAGE])
    thanks = TextAreaField("Thanks after sending", [PASSAGE])
    language = StringField("Language of these texts", [LINE])
    access = SelectField(
        "Who can answer",
        choices=choices({"open": "Everyone with the link", "invitation": "Only invited people"}),
    )
    theme = SelectField(
        "Accent color",
        choices=choices({"": "Standard", "blue": "Blue", "plum": "Plum", "slate": "Slate"}),
    )
    bucket = SelectField(
        "Store the date of a release",
        choices=choices({"none": "No", "week": "By week, for trends", "day": "By day"}),
    )
    quick_exit = StringField("Destination of “Leave now”", [LINE])
    questions_per_person = StringField("Questions per respondent", [LINE])
    allow_skip_logic = BooleanField(FIELD_NAMES["allow_skip_logic"])
    kiosk = BooleanField("For shared devices: store nothing on them")


class PlanForm(SheetForm):
    """What is planned; none of it is frozen."""

    n = StringField("Expected responses", [LINE])
    margin = StringField("Target margin of error, in percentage points", [LINE])
    opens = StringField("First day", [LINE], widget=DateInput())
    closes = StringField("Last day", [LINE], widget=DateInput())
    most = StringField("Response limit", [LINE])
    strata = TextAreaField("Groups to invite", [PASSAGE])


class PageForm(SheetForm):
    """The title of a page."""

    title = StringField("Page title", [LINE])


def name_of(form: type[FlaskForm], field: str) -> str:
    """What a form calls one of its fields; of an answer and of what is in no form, in words."""
    if field.startswith("option-"):
        return "Answer"
    unbound = getattr(form, field, None)
    return str(unbound.args[0]) if unbound and isinstance(unbound.args[0], str) else "The survey"


class SimulateForm(FlaskForm):  # type: ignore[misc]
    """How many simulated respondents answer a try-out."""

    n = WholeNumberField(
        "Simulated respondents",
        [
            InputRequired("Enter the number of respondents"),
            NumberRange(1, MAX_SIMULATED, f"Enter a number from 1 to {MAX_SIMULATED:,}"),
        ],
    )
    submit = SubmitField("Add test responses")


class PublishDraftForm(SheetForm):
    """What is agreed to before a draft is frozen."""

    agreed = BooleanField(
        "I understand what I cannot change",
        [InputRequired("Tick this when you have read what you cannot change")],
    )
    submit = SubmitField("Publish survey")


class LanguageForm(FlaskForm):  # type: ignore[misc]
    """A language more."""

    language = StringField("Language", [InputRequired("Enter a language, such as es"), LINE])
    submit = SubmitField("Add language")


def translation_form(texts: Sequence[tuple[str, str]], formdata: Any, **data: Any) -> SheetForm:
    """A form with a field for each text, by name and label."""
    fields: dict[str, Any] = {name: TextAreaField(label, [PASSAGE]) for name, label in texts}
    form: SheetForm = type("TranslationForm", (SheetForm,), fields)(formdata=formdata, data=data)
    return form


def fields_of(form: FlaskForm) -> dict[str, Field]:
    """The fields of a sheet, by their names."""
    return {field.name: field for field in form if field.name not in ("csrf_token", "revision")}


FEWEST_ROWS = 3
"""Rows for options that stand there from the beginning."""

Row = dict[str, Any]


def values_of(form: SheetForm, base: Values) -> dict[str, Any]:
    """What was sent, beside what the form had no field for."""
    sent: dict[str, Any] = {}
    for name, field in fields_of(form).items():
        sent[name] = _rows(field.data) if name == "options" else _value(field.data)
    return {name: sent.get(name, value) for name, value in base.items()}


def options_after(options: tuple[Row, ...], do: str) -> tuple[Row, ...]:
    """The options after a button of the rows was pressed; any other button changes nothing.

    >>> [row["key"] for row in options_after(({"key": 1}, {"key": 2}), "option-up 1")]
    [2, 1]
    """
    what, _, number = do.partition(" ")
    rows, i = list(options), whole_number(number, -1)
    if what == "option-add":
        rows.append({"key": 0, "id": "", "label": ""})
    if not 0 <= i < len(options):
        return tuple(rows)
    if what == "option-remove":
        del rows[i]
    step = {"option-up": -1, "option-down": 1}.get(what, 0)
    if step and 0 <= i + step < len(rows):
        rows[i], rows[i + step] = rows[i + step], rows[i]
    return tuple(rows)


def padded(options: tuple[Row, ...]) -> list[Row]:
    """Rows to show: those there are, and empty ones to begin with."""
    empty = [{"key": "", "id": "", "label": ""} for _ in range(FEWEST_ROWS - len(options))]
    return [*options, *empty]


def _rows(entries: list[Row]) -> tuple[Row, ...]:
    """The rows that say something or are known; a row of spaces is empty."""
    rows = []
    for entry in entries:
        row = {
            "key": whole_number(str(entry["key"] or "")),
            "id": _value(entry["id"]),
            "label": _value(entry["label"]),
        }
        if row["key"] or row["id"] or row["label"]:
            rows.append(row)
    return tuple(rows)


def _value(data: Any) -> Any:
    """Text without the spaces around it; lists as tuples, as sheets have them."""
    if isinstance(data, list):
        return tuple(data)
    if isinstance(data, bool):
        return data
    return plain(data) if isinstance(data, str) else ""


def plain(text: str) -> str:
    """A text without the spaces around it, and without NUL, which one of both databases refuses."""
    return text.replace("\r\n", "\n").replace("\0", "").strip()


def add_conditions(
    form: QuestionForm, content: DraftContent, found: Examined, values: Values
) -> None:
    """Let a form offer what its question can depend on; `values` are those it was opened with."""
    chosen = str(form.ask_question.data or "")
    earlier = {str(one["id"]): one for one in _before(content, str(values["id"]))}
    texts = {name: _text(content, one) for name, one in earlier.items()}
    named = next((one for one in content.questions if chosen and one["id"] == chosen), None)
    if chosen and chosen not in texts:
        text = _text(content, named) if named else chosen
        texts[chosen] = f"{text} (no longer an earlier question with options)"
    form.ask_question.choices = choices({"": "Always", **texts})
    asked = found.questions.get(named["key"]) if named else None
    labels = {one.id: one.label for one in asked.all_options} if asked else {}
    if asked and chosen != values["ask_question"]:
        # What was ticked is of the question before.
        form.ask_options.data = [name for name in form.ask_options.data if name in labels]
    _offer_answers(form, labels, is_known=asked is not None)


def _offer_answers(form: QuestionForm, labels: dict[str, str], *, is_known: bool) -> None:
    """The answers to tick, and those ticked that are not, or not yet, among them."""
    ticked = form.ask_options.data or () if form.ask_question.data else ()
    gone = " (no longer an answer of that question)" if is_known else ""
    others = {name: f"{name}{gone}" for name in ticked if name not in labels}
    form.ask_options.choices = choices({**labels, **others})


def _before(content: DraftContent, name: str) -> Iterator[Question]:
    """Questions before one, with options that it can depend on."""
    for question in content.questions:
        if question["id"] == name:
            return
        if not kind_of(question).is_numeric:
            yield question


def _text(content: DraftContent, question: Question) -> str:
    return str(question["text"].get(content.own) or question["id"])
