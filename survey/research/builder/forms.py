"""Forms of the builder: fields for the parts of a draft, and the values that were sent in them.

A draft may be wrong while it is edited, so these fields refuse only what is too long to store;
`survey.questionnaire.drafts.check` says what has to change before publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask_wtf import FlaskForm
from flask_wtf.file import FileField, FileRequired
from wtforms import (
    BooleanField,
    Field,
    FieldList,
    Form,
    FormField,
    HiddenField,
    RadioField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
    StringField,
    SubmitField,
    TextAreaField,
)
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, ValidationError
from wtforms.widgets import CheckboxInput, DateInput, ListWidget

from survey.collect.simulation import MAX_SIMULATED
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.drafts.check import DraftCheck
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.drafts.edits import Values
from survey.questionnaire.drafts.form_messages import (
    FIELD_NAMES,
    LEVELS,
    MECHANISM_NAMES,
    WAY_NAMES,
    level_name,
)
from survey.questionnaire.kinds import WRITTEN_KINDS, kind_of
from survey.research.forms import WholeNumberField, whole_number

LINE, PASSAGE = Length(max=1_000), Length(max=12_000)
"""Longer than what can be published, so that a text that is too long is reported, not lost."""

TYPE_NAMES: Mapping[str, str] = {name: kind.label for name, kind in WRITTEN_KINDS.items()}
"""The names of the question types in the builder."""

TYPE_ICONS: Mapping[str, str] = {name: kind.icon for name, kind in WRITTEN_KINDS.items()}
"""The icons of the question types, as SVG paths in 24 by 24 pixels."""


def choices(names: Mapping[str, str]) -> list[SelectChoice]:
    """Return the choices of a select: values and labels."""
    return [SelectChoice(value, label) for value, label in names.items()]


class NewDraftForm(FlaskForm):  # type: ignore[misc]
    """The title of a new survey, and the template to start from; "" is an empty survey."""

    template = RadioField("Start from", default="")
    title = StringField("Title", [Length(max=300)])
    submit = SubmitField("Create draft")

    def __init__(self, templates: Mapping[str, str], **options: Any) -> None:
        super().__init__(**options)
        self.template.choices = choices({"": "An empty survey", **templates})

    def validate_title(self, field: StringField) -> None:
        """Require a title for an empty survey; a template has its own."""
        if not self.template.data and not plain(field.data or ""):
            raise ValidationError("Enter a title; you can change it later")


class DraftFileForm(FlaskForm):  # type: ignore[misc]
    """The upload of a definition, or of a questionnaire of another tool."""

    file = FileField("File", [FileRequired("Choose a file")])
    skip_logic = BooleanField("Keep skip logic")


class DoForm(FlaskForm):  # type: ignore[misc]
    """A form that has only buttons."""


class SheetForm(FlaskForm):  # type: ignore[misc]
    """Base of all sheets: the revision at which they were opened."""

    revision = HiddenField()


class OptionForm(Form):  # type: ignore[misc]
    """One option; a new one has no key yet."""

    key = HiddenField()
    label = StringField("Answer", [LINE])
    id = StringField("Id in downloads", [LINE])


class QuestionForm(SheetForm):
    """All fields of questions; `for_type` removes those of other types."""

    text = TextAreaField("Question", [PASSAGE])
    help = TextAreaField("Help below the question", [PASSAGE])
    id = StringField("Id in downloads", [LINE])
    topic = StringField("Topic", [LINE])
    type = SelectField("Type", choices=choices(TYPE_NAMES))
    rows = TextAreaField("Rows", [PASSAGE])
    options = FieldList(FormField(OptionForm))
    pasted = TextAreaField("Several answers", [PASSAGE])
    low = StringField(FIELD_NAMES["low"], [LINE])
    high = StringField(FIELD_NAMES["high"], [LINE])
    step = StringField(FIELD_NAMES["step"], [LINE])
    unit = StringField("Unit", [LINE])
    slider = BooleanField(FIELD_NAMES["slider"])
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
    together_with = SelectField("Asked together with", validate_choice=False)
    joint = BooleanField("Randomize the answers to both questions as one")
    way = SelectField(FIELD_NAMES["way"], validate_choice=False)
    value = StringField("Value", [LINE])
    mechanism = SelectField("Mechanism", validate_choice=False)
    parameters = TextAreaField(FIELD_NAMES["parameters"], [PASSAGE])

    def for_type(self, name: str) -> QuestionForm:
        """Remove the fields of other types, and fill in the choices of this one."""
        self.kind = kind = WRITTEN_KINDS[name]
        other_fields = {field for other in WRITTEN_KINDS.values() for field in other.fields}
        for field in other_fields - set(kind.fields):
            del self[field]
        if "options" not in kind.fields:
            del self.pasted
        mechanisms = {name: MECHANISM_NAMES[name] for name in kind.mechanisms}
        self.mechanism.choices = choices({"": "Standard", **mechanisms})
        design = DESIGNS.get(self.mechanism.data or "") or DESIGNS[kind.mechanism]
        # The rows of a matrix share an epsilon.
        ways = [
            way
            for way in PRIVACY
            if way in design.ways and (way == "epsilon" or not kind.is_matrix)
        ]
        if kind.is_matrix:
            del self.joint
        levels = [f"{LEVEL}{epsilon}" for epsilon in LEVELS if epsilon]
        if self.way.data not in (*PRIVACY, *levels):
            self.way.data = ""
        elif self.way.data in PRIVACY and self.way.data not in ways:
            ways.append(self.way.data)
        if self.way.data == "epsilon" and self.value.data in LEVELS:
            self.way.data = f"{LEVEL}{self.value.data}"
        self.way.choices = [
            *(_level_choice(name) for name in LEVELS if not name or "epsilon" in ways),
            *(SelectChoice(way, WAY_NAMES.get(way, way), optgroup="Exact value") for way in ways),
        ]
        return self


LEVEL = "epsilon "
"""Prefix of the named privacy levels among the choices; the rest of the choice is the epsilon."""


def _level_choice(level: str) -> SelectChoice:
    value = f"{LEVEL}{level}" if level else ""
    return SelectChoice(value, level_name(level), optgroup="Privacy levels")


def _without_level(values: dict[str, Any], base: Values) -> dict[str, Any]:
    """Return the way and value that a named level stands for; a value typed beside it prevails."""
    way, _, level = str(values["way"]).partition(" ")
    was_chosen = (base["way"], base["value"]) == (way, level)
    typed = values["value"] if was_chosen else ""
    return {**values, "way": way, "value": typed or level} if level else values


class SurveyForm(SheetForm):
    """Texts and settings of the survey."""

    title = StringField("Title", [LINE])
    slug = StringField("Short name in the address", [LINE])
    organization = StringField("Who is asking", [LINE])
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
    layout = SelectField(
        "Questions on each screen",
        choices=choices(
            {
                "auto": "One in surveys of up to 20 questions, otherwise whole pages",
                "questions": "One",
                "pages": "All questions of the page",
            }
        ),
    )
    bucket = SelectField(
        "Store the date of a release",
        choices=choices({"none": "No", "week": "By week, for trends", "day": "By day"}),
    )
    quick_exit = StringField("Destination of “Leave now”", [LINE])
    questions_per_person = SelectField("Questions per respondent", [LINE], validate_choice=False)
    allow_skip_logic = BooleanField(FIELD_NAMES["allow_skip_logic"])
    kiosk = BooleanField("For shared devices: store nothing on them")
    field_until = StringField("Field mode: last day for uploads", [LINE], widget=DateInput())


class PlanForm(SheetForm):
    """The plan of a survey, which publishing does not freeze."""

    n = StringField("Expected responses", [LINE])
    margin = StringField("Target margin of error, in percentage points", [LINE])
    total = StringField("Total epsilon of a complete response", [LINE])
    crossings = TextAreaField("Questions to cross-tabulate", [PASSAGE])
    opens = StringField("First day", [LINE], widget=DateInput())
    closes = StringField("Last day", [LINE], widget=DateInput())
    most = StringField("Response limit", [LINE])
    strata = TextAreaField("Groups to invite", [PASSAGE])


class PageForm(SheetForm):
    """The title of a page."""

    title = StringField("Page title", [LINE])


def name_of(form: type[FlaskForm], field: str) -> str:
    """Return the label of a form field, "Answer" for an option, or else "The survey"."""
    if field.startswith("option-"):
        return "Answer"
    unbound = getattr(form, field, None)
    return str(unbound.args[0]) if unbound and isinstance(unbound.args[0], str) else "The survey"


class SimulateForm(FlaskForm):  # type: ignore[misc]
    """The number of simulated respondents to add to a test run."""

    n = WholeNumberField(
        "Simulated respondents",
        [
            InputRequired("Enter the number of respondents"),
            NumberRange(1, MAX_SIMULATED, f"Enter a number from 1 to {MAX_SIMULATED:,}"),
        ],
    )
    submit = SubmitField("Add test responses")


class PublishDraftForm(SheetForm):
    """The confirmation before a draft is published."""

    agreed = BooleanField(
        "I understand what I cannot change",
        [InputRequired("Tick this when you have read what you cannot change")],
    )
    submit = SubmitField("Publish survey")


class QuestionListForm(SheetForm):
    """A text with several questions and their answers."""

    written = TextAreaField(
        "Questions and answers", [DataRequired("Write at least one question"), PASSAGE]
    )
    submit = SubmitField("Add these questions")


class LanguageForm(FlaskForm):  # type: ignore[misc]
    """A language to add."""

    language = StringField("Language", [InputRequired("Enter a language, such as es"), LINE])
    submit = SubmitField("Add language")


def translation_form(texts: Sequence[tuple[str, str]], formdata: Any, **data: Any) -> SheetForm:
    """Return a form with a field for each text, given by name and label."""
    fields: dict[str, Any] = {name: TextAreaField(label, [PASSAGE]) for name, label in texts}
    form: SheetForm = type("TranslationForm", (SheetForm,), fields)(formdata=formdata, data=data)
    return form


def fields_of(form: FlaskForm) -> dict[str, Field]:
    """Return the fields of a sheet by name."""
    return {field.name: field for field in form if field.name not in ("csrf_token", "revision")}


MIN_ROWS = 3
"""Rows for options in a new question."""

Row = dict[str, Any]


def values_of(form: SheetForm, base: Values) -> dict[str, Any]:
    """Return the values that were sent, and the old ones where the form has no field."""
    values: dict[str, Any] = {}
    for name, field in fields_of(form).items():
        values[name] = nonempty_rows(field.data) if name == "options" else _value(field.data)
    values = _without_level(values, base) if "way" in values else values
    return {name: values.get(name, value) for name, value in base.items()}


def options_after(entries: Sequence[Row], action: str, place: int) -> tuple[Row, ...]:
    """Return the options after a button of a row was pressed; the place counts empty rows too.

    >>> entries = [{"key": "", "id": "", "label": label} for label in ("A", "", "C")]
    >>> [row["label"] for row in options_after(entries, "option-up", 2)]
    ['A', 'C']
    >>> [row["label"] for row in options_after(entries, "option-remove", 2)]
    ['A']
    """
    rows = list(entries)
    if action == "option-remove":
        rows[place : place + 1] = []
    step = {"option-up": -1, "option-down": 1}.get(action, 0)
    if step and 0 <= place < len(rows) and 0 <= place + step < len(rows):
        rows[place], rows[place + step] = rows[place + step], rows[place]
    added = ({"key": 0, "id": "", "label": ""},) if action == "option-add" else ()
    return (*nonempty_rows(rows), *added)


def pasted_options(options: Sequence[Row], text: str) -> tuple[Row, ...]:
    """Return the options with one more for each line of a text; rows without a text give way.

    >>> [row["label"] for row in pasted_options([{"label": "A"}, {"label": ""}], "B\\n\\n C ")]
    ['A', 'B', 'C']
    """
    lines = [line.strip() for line in plain(text).splitlines()]
    added = [{"key": 0, "id": "", "label": line} for line in lines if line]
    return (*(row for row in options if row["label"] or not added), *added)


def pad_options(options: tuple[Row, ...]) -> list[Row]:
    """Return the rows to show, with empty ones up to the minimum."""
    empty = [{"key": "", "id": "", "label": ""} for _ in range(MIN_ROWS - len(options))]
    return [*options, *empty]


def nonempty_rows(entries: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows that have a key, an id or a label."""
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
    """Return stripped text, and lists as tuples, as in sheets."""
    if isinstance(data, list):
        return tuple(data)
    if isinstance(data, bool):
        return data
    return plain(data) if isinstance(data, str) else ""


def plain(text: str) -> str:
    """Strip a text, and remove NUL, which PostgreSQL rejects."""
    return text.replace("\r\n", "\n").replace("\0", "").strip()


def add_conditions(
    form: QuestionForm, content: DraftContent, draft_check: DraftCheck, values: Values
) -> None:
    """Fill in the questions and answers that a condition can name.

    Browsers send the first entry of a list that lacks the stored value, so the stored question and
    answers are offered even when they are no longer valid. `values` are those of the opened sheet.
    """
    parent_id = str(form.ask_question.data or "")
    earlier = _possible_parents(content, str(values["id"]))
    texts = {str(question["id"]): _text(content, question) for question in earlier}
    parent = next((q for q in content.questions if parent_id and q["id"] == parent_id), None)
    if parent_id and parent_id not in texts:
        text = _text(content, parent) if parent else parent_id
        texts[parent_id] = f"{text} (no longer an earlier question with options)"
    form.ask_question.choices = choices({"": "Always", **texts})
    valid = draft_check.questions.get(parent["key"]) if parent else None
    labels = {option.id: option.label for option in valid.all_options} if valid else {}
    if valid and parent_id != values["ask_question"]:
        # The ticks belong to the question that was chosen before.
        form.ask_options.data = [name for name in form.ask_options.data if name in labels]
    _offer_answers(form, labels, is_known=valid is not None)


def add_companions(form: QuestionForm, content: DraftContent, values: Values) -> None:
    """Offer all other questions as those that can be asked together with this one."""
    others = {
        str(question["id"]): _text(content, question)
        for question in content.questions
        if question["id"] and question["id"] != values["id"]
    }
    stored = str(form.together_with.data or "")
    if stored and stored not in others:
        others[stored] = f"{stored} (no longer a question)"
    form.together_with.choices = choices({"": "No other question", **others})


def earlier_answers(
    content: DraftContent, draft_check: DraftCheck, key: int
) -> list[tuple[str, str]]:
    """Return the id and text of each question whose answer the texts of question `key` can show."""
    sources: list[tuple[str, str]] = []
    for page in content.pages:
        if any(question["key"] == key for question in page.questions):
            break
        valid = (draft_check.questions.get(question["key"]) for question in page.questions)
        sources += [(q.id, q.text) for q in valid if q and not q.kind.is_multiple and not q.matrix]
    return sources


def _offer_answers(form: QuestionForm, labels: dict[str, str], *, is_known: bool) -> None:
    """Offer the answers of a question, and the ticked ones that are not among them."""
    ticked = form.ask_options.data or () if form.ask_question.data else ()
    note = " (no longer an answer of that question)" if is_known else ""
    unknown = {name: f"{name}{note}" for name in ticked if name not in labels}
    form.ask_options.choices = choices({**labels, **unknown})


def _possible_parents(content: DraftContent, name: str) -> Iterator[Question]:
    """Yield the earlier questions with options, on which a question can depend.

    A matrix as a whole has no answer; a definition file can state a condition on one row.
    """
    for question in content.questions:
        if question["id"] == name:
            return
        if not kind_of(question).is_numeric and not kind_of(question).is_matrix:
            yield question


def _text(content: DraftContent, question: Question) -> str:
    return str(question["text"].get(content.own_language) or question["id"])
