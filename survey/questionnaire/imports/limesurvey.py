"""LimeSurvey: a survey's structure as .lss or as tab-separated values.

Source of the types and attributes: https://www.limesurvey.org/manual/Question_types
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

from survey.mechanism.weight_table import MAX_RANKED, MIN_RANKED
from survey.questionnaire.error_messages import shortened
from survey.questionnaire.imports.assembly import (
    REQUIRED,
    UNBOUNDED,
    Assembly,
    Condition,
    Form,
    Imported,
    joined_texts,
    language_tag,
    listed_options,
    matrix_forms,
)
from survey.questionnaire.imports.earlier_answers import References
from survey.questionnaire.imports.limesurvey_conditions import (
    Conditions,
    is_condition,
    label_note,
)
from survey.questionnaire.imports.limesurvey_files import (
    Entry,
    LimeQuestion,
    LimeSurvey,
    Localized,
    parse_file,
)
from survey.questionnaire.imports.limesurvey_terms import (
    DROPPED,
    EMAIL,
    ENGLISH_WORDS,
    IGNORED_REASONS,
    IMPORTED_TEXTS,
    KINDS,
    LAYOUT,
    MAX_CELLS,
    NO_COMMENT,
    NO_TIME,
    OTHER,
    REASONS,
    SCALES,
    SETTING_REASONS,
    SURVEY_TEXTS,
    UNSET,
    USUAL_VALUES,
    WORDS,
)
from survey.questionnaire.imports.markup import Text, one_line, plain_text
from survey.questionnaire.kinds.scale import point_id

PLACEHOLDER = re.compile(r"\{(?=[^\s{}])([^{}]{1,1000})\}")
"""An equation in a text: LimeSurvey ignores braces that are followed by a space."""

Reader = Callable[["_Reader", LimeQuestion], None]


def read(content: bytes, name: str, *, skip_logic: bool = False) -> Imported:
    """Import a survey of LimeSurvey; raises DefinitionError if the file contains none."""
    survey = parse_file(content, name)
    language = _base_tag(survey.language) or "en"
    conditions = Conditions(survey)
    references = References(PLACEHOLDER, conditions.answer_name, label_note)
    to = Assembly(language, skip_logic=skip_logic, references=references)
    return _Reader(survey, to, conditions, references).read()


class _Reader:
    """Reads the questions of a survey, by the method of its type.

    `_losses` are what the texts of the current question contained beside text, and `_used` the
    attributes that its reader asked for.
    """

    def __init__(
        self,
        survey: LimeSurvey,
        assembly: Assembly,
        conditions: Conditions,
        references: References,
    ) -> None:
        self._survey, self._to = survey, assembly
        self._conditions, self._references = conditions, references
        self._losses: set[str] = set()
        self._arriving: set[str] = set()
        self._condition: Condition | None = None
        self._tags = {survey.language: assembly.language}
        """The language tags by the names of languages in the file."""

    def read(self) -> Imported:
        self._read_texts()
        self._read_settings()
        for number, group in enumerate(self._survey.groups, 1):
            name = self._plain(group.names) or f"group {number}"
            title = self._text(group.names)
            self._report_losses(name, "group")
            self._to.add_page(title)
            if any(group.descriptions.values()):
                self._to.drop(name, "description", "pages have a title only")
            if group.randomization:
                self._to.drop(name, "randomization_group", REASONS["randomization_group"])
            for question in group.questions:
                self._read_question(question, group.relevance)
        for name, tag in self._tags.items():
            if not tag:
                self._to.drop(name, "language", "is no language tag, or that of another language")
            elif tag != language_tag(name):
                self._to.change(name, "language", f"arrives as {tag}")
        return self._to.finish()

    def _read_texts(self) -> None:
        """Read the texts of the survey; the description precedes the welcome text."""
        texts = self._survey.texts
        parts = [texts.get("description", {}), texts.get("welcometext", {})]
        introductions = [part for part in parts if any(part.values())]
        survey_texts: dict[str, Text] = {"title": self._text(texts.get("title", {}))}
        survey_texts["introduction"] = self._text(_stacked(introductions), line=False)
        survey_texts["thanks"] = self._text(texts.get("endtext", {}), line=False)
        self._report_losses("survey", "texts")
        self._to.texts |= {key: text for key, text in survey_texts.items() if text}
        unknown_keys = sorted(
            key
            for key, translations in texts.items()
            if key not in IMPORTED_TEXTS and any(translations.values())
        )
        if emails := [shortened(key) for key in unknown_keys if key.startswith("email_")]:
            self._to.drop("survey", "emails", f"{EMAIL}: {', '.join(emails)}")
        for key in unknown_keys:
            if not key.startswith("email_"):
                self._to.drop("survey", shortened(key), SURVEY_TEXTS.get(key, "has no counterpart"))

    def _read_settings(self) -> None:
        """Report the settings and tables that have no counterpart."""
        settings = {
            key: value
            for key, value in self._survey.settings.items()
            if value not in UNSET and key not in ("sid", "gsid", "language", "additional_languages")
        }
        for key in sorted(settings.keys() & SETTING_REASONS.keys()):
            self._to.drop("survey", key, SETTING_REASONS[key])
        unknown = sorted(settings.keys() - SETTING_REASONS.keys())
        if unknown:
            listed = ", ".join(map(shortened, unknown))
            self._to.drop("survey", "settings", f"have no counterpart: {listed}")
        for table, number in self._survey.ignored.items():
            why = IGNORED_REASONS.get(table, "has no counterpart")
            self._to.drop("survey", f"{shortened(table)}, {number} rows", why)

    def _read_question(self, question: LimeQuestion, group_relevance: str) -> None:
        name, kind = question.code, self._kind(question)
        self._losses, self._arriving = set(), set()
        sizes = len(question.subquestions), len(question.answers)
        if why := self._why_not(question):
            self._to.drop(name, kind, why)
        elif not self._to.drop_if_too_long(name, kind, *sizes):
            self._condition, why_no_condition = self._conditions.of(question, group_relevance)
            n_before = len(self._to.elements)
            _READERS[question.type](self, question)
            if any(element.outcome != "dropped" for element in self._to.elements[n_before:]):
                self._report_rest(question, why_no_condition)

    def _why_not(self, question: LimeQuestion) -> str:
        """Return why a question cannot be imported, or ""."""
        if self._attribute(question, "hidden") == "1":
            return "is hidden: respondents do not see it"
        if question.type in _READERS:
            return ""
        return DROPPED.get(question.type, "is of a type that has no counterpart")

    def _kind(self, question: LimeQuestion) -> str:
        return KINDS.get(question.type, f"type {shortened(question.type)}")

    def _report_rest(self, question: LimeQuestion, why_no_condition: str) -> None:
        """Report what an imported question loses: conditions, checks, default answers."""
        name, settings = question.code, question.settings
        if why_no_condition:
            self._to.drop(name, "condition", f"{why_no_condition}; everybody is asked this")
        if settings.get("mandatory", "N") in ("Y", "S"):
            self._to.drop(name, "mandatory", REQUIRED)
        if settings.get("preg"):
            self._to.drop(name, "validation", REASONS["preg"])
        if question.has_default:
            why = "an answer that is given in advance would be reported"
            self._to.drop(name, "default answer", why)
        if any(is_condition(part.relevance) for part in question.subquestions):
            why = "rows and options cannot depend on earlier answers"
            self._to.drop(name, "relevance of subquestions", why)
        for key, values in question.attributes.items():
            usual = UNSET | {USUAL_VALUES.get(key, "")}
            is_set = any(value not in usual for value in values.values())
            if is_set and key not in self._arriving | LAYOUT:
                why = NO_TIME if key.startswith("time_limit") else "has no counterpart"
                self._to.drop(name, shortened(key), REASONS.get(key, why))

    # -- one method for each type

    def _list(self, question: LimeQuestion) -> None:
        """Read a list of answers; that of an "O" also has a field for a comment."""
        changes = [NO_COMMENT] if question.type == "O" else []
        self._add_list(question, question.answers, {"type": "single_choice"}, changes)

    def _yes_no(self, question: LimeQuestion) -> None:
        self._add(question, {"type": "yes_no"}, {"yes": "Y", "no": "N"})

    def _words(self, question: LimeQuestion) -> None:
        entries = [Entry(code, texts={"": label}) for code, label in WORDS[question.type]]
        self._add_list(question, entries, {"type": "single_choice"}, self._english())

    def _languages(self, question: LimeQuestion) -> None:
        from babel import Locale, UnknownLocaleError

        tags = [
            self._survey.language,
            *self._survey.settings.get("additional_languages", "").split(),
        ]
        entries = []
        for tag in dict.fromkeys(tags):
            try:
                label = Locale.parse(language_tag(tag), sep="-").get_display_name() or tag
            except (ValueError, UnknownLocaleError):
                label = tag
            entries.append(Entry(tag, texts={"": label}))
        changes = ["asks for a language; the page's own menu changes it"]
        self._add_list(question, entries, {"type": "single_choice"}, changes)

    def _five_points(self, question: LimeQuestion) -> None:
        low, high = SCALES[question.type]
        values = {point_id(point): str(point) for point in range(low, high + 1)}
        self._add(question, {"type": "scale", "low": low, "high": high}, values)

    def _multiple(self, question: LimeQuestion) -> None:
        changes = [NO_COMMENT] if question.type == "P" else []
        entries = list(question.subquestions)
        form: Form = {"type": "multiple_choice"}
        excluding = re.split(r"[;,\s]+", self._attribute(question, "exclude_all_others"))
        self._arriving.discard("exclude_all_others")
        alone = [entry for entry in entries if entry.code in excluding]
        if len(alone) == 1 and len(entries) > 2:
            self._arriving.add("exclude_all_others")
            entries.remove(alone[0])
            form["none_of_these"] = self._text(alone[0].texts) or alone[0].code
            changes.append(f"{shortened(alone[0].code)} is the option that excludes all others")
        maximum = self._attribute(question, "max_answers")
        if maximum.isascii() and maximum.isdecimal() and 0 < int(maximum[:6]) < len(entries):
            form["max_ticks"] = int(maximum[:6])
        values = {"none_of_these": alone[0].code} if "none_of_these" in form else {}
        self._add_list(question, entries, form, changes, values)

    def _ranking(self, question: LimeQuestion) -> None:
        entries = question.answers or question.subquestions
        if not MIN_RANKED <= len(entries) <= MAX_RANKED:
            why = f"has {len(entries)} options; {MIN_RANKED} to {MAX_RANKED} can be ranked"
            self._to.drop(question.code, self._kind(question), why)
            return
        maximum = self._attribute(question, "max_answers")
        changes = ["people rank all options"] if maximum not in UNSET | {str(len(entries))} else []
        self._add_list(question, entries, {"type": "ranking"}, changes)

    def _number(self, question: LimeQuestion) -> None:
        self._add_number(question, question.code, {})

    def _numbers(self, question: LimeQuestion) -> None:
        """Read a list of numbers, each as a separate question."""
        if not question.subquestions:
            self._to.drop(question.code, self._kind(question), "has no subquestions")
        for entry in question.subquestions[:MAX_CELLS]:
            extra = {"text": self._join(question, entry.texts, entry.code)}
            self._add_number(question, f"{question.code}_{entry.code}", extra)
        self._report_cells(question, len(question.subquestions))

    def _add_number(self, question: LimeQuestion, name: str, extra: Form) -> None:
        slider = self._attribute(question, "slider_layout") == "1"
        low, high, step = (
            next(filter(None, (self._attribute(question, key) for key in keys)), "")
            for keys in (
                ("slider_min", "min_num_value_n") if slider else ("min_num_value_n",),
                ("slider_max", "max_num_value_n") if slider else ("max_num_value_n",),
                ("slider_accuracy",) if slider else (),
            )
        )
        whole = self._attribute(question, "num_value_int_only") == "1"
        if not (_is_number(low) and _is_number(high)):
            self._to.drop(name, self._kind(question), UNBOUNDED)
            return
        step = step if _is_number(step) else "1"
        changes = [] if whole or slider else [f"numbers are rounded to steps of {step}"]
        form: Form = {"type": "number", "low": low, "high": high, "step": step}
        if slider:
            form["slider"] = True
        if unit := self._text(self._localized(question, "suffix")):
            form["unit"] = unit
        changes = [*(["is a separate question"] if extra else []), *changes]
        self._add(question, form | extra, {}, changes, name)

    def _date(self, question: LimeQuestion) -> None:
        low = _day(self._attribute(question, "date_min"), "01-01")
        high = _day(self._attribute(question, "date_max"), "12-31")
        if not low or not high:
            self._to.drop(question.code, "date", UNBOUNDED)
            return
        self._arriving.add("date_format")
        pattern = self._attribute(question, "date_format")
        changes = ["the time of the day is left out"] if "H" in pattern else []
        self._add(question, {"type": "date", "low": low, "high": high}, {}, changes)

    def _array(self, question: LimeQuestion) -> None:
        """Read rows that have one scale: numbers, answers that LimeSurvey provides, or a list."""
        scale: Form
        if question.type in SCALES:
            low, high = SCALES[question.type]
            scale, changes = {"low": low, "high": high}, []
        elif question.type in WORDS:
            options, _ = listed_options(WORDS[question.type])
            scale, changes = {"options": options}, self._english()
        else:
            scale, changes = {"options": self._options(question.answers)[0]}, []
        self._add_matrix(question, scale, changes)

    def _two_scales(self, question: LimeQuestion) -> None:
        for number, attribute in enumerate(("dualscale_headerA", "dualscale_headerB")):
            answers = [answer for answer in question.answers if answer.scale == number]
            header = self._localized(question, attribute)
            text = self._join(question, header, f"{number + 1}")
            scale: Form = {"options": self._options(answers)[0]}
            changes = [f"is scale {number + 1} of 2"]
            self._add_matrix(question, scale, changes, text, f"{question.code}_{number + 1}")

    def _number_array(self, question: LimeQuestion) -> None:
        """Read a table: a matrix for each column of numbers, a list for each row of ticks."""
        columns = [entry for entry in question.subquestions if entry.scale]
        rows = [entry for entry in question.subquestions if not entry.scale]
        if not columns or not rows:
            self._to.drop(question.code, self._kind(question), "has no rows or no columns")
            return
        if self._attribute(question, "multiflexible_checkbox") == "1":
            for row in rows[:MAX_CELLS]:
                text, name = (
                    self._join(question, row.texts, row.code),
                    f"{question.code}_{row.code}",
                )
                form: Form = {"type": "multiple_choice", "text": text}
                self._add_list(question, columns, form, ["is a row of an array"], name=name)
            self._report_cells(question, len(rows))
            return
        ends = [
            self._attribute(question, f"multiflexible_{key}") or usual
            for key, usual in (("min", "1"), ("max", "10"), ("step", "1"))
        ]
        numbers = [int(end) for end in ends if re.fullmatch(r"-?[0-9]{1,9}", end)]
        points = range(*numbers[:2], *numbers[2:]) if len(numbers) == 3 and numbers[2] > 0 else ()
        points = range(points.start, numbers[1] + 1, numbers[2]) if points else ()
        if not 2 <= len(points) <= MAX_POINTS:
            why = f"its numbers are not 2 to {MAX_POINTS} whole numbers between two ends"
            self._to.drop(question.code, self._kind(question), why)
            return
        scale = _numbered(points)
        for column in columns[:MAX_CELLS]:
            text = self._join(question, column.texts, column.code)
            name = f"{question.code}_{column.code}"
            self._add_matrix(question, scale, ["is a column of an array"], text, name, rows)
        self._report_cells(question, len(columns))

    def _display(self, question: LimeQuestion) -> None:
        """Read a text without an answer: the introduction, if it comes before all questions."""
        kind = self._kind(question)
        text = self._text(question.texts, line=False)
        is_first = not any(questions for _, questions in self._to.pages)
        if not text or not is_first or is_condition(question.settings.get("relevance", "")):
            self._to.drop(question.code, kind, "is no question; only an introduction has a place")
            return
        introduction = self._to.texts.get("introduction", "")
        language = self._to.language
        combined = (
            joined_texts(introduction, text, language, "{}\n\n{}".format) if introduction else text
        )
        self._to.texts["introduction"] = combined
        self._to.change(question.code, kind, "is part of the introduction")
        self._report_losses(question.code, kind)

    # -- parts

    def _add_list(
        self,
        question: LimeQuestion,
        entries: Sequence[Entry],
        form: Form,
        changes: Sequence[str] = (),
        values: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """Add a question with a list of options."""
        changes = list(changes)
        entries = list(entries)
        if question.settings.get("other") == "Y" and not name:
            label = self._localized(question, "other_replace_text")
            entries.append(Entry(OTHER, texts=label or {"": "Other"}))
            changes.append("the option for other answers has no field for text")
        if len(entries) < 2:
            self._to.drop(name or question.code, self._kind(question), "has fewer than two options")
            return
        options, codes = self._options(entries)
        keys = ("random_order", "answer_order", "subquestion_order")
        if any(self._attribute(question, key) in ("1", "random") for key in keys):
            form = {**form, "shuffle_options": True}
        form = {**form, "options": options}
        self._add(question, form, {**codes, **(values or {})}, changes, name)

    def _options(self, entries: Iterable[Entry]) -> tuple[list[Form], dict[str, str]]:
        labels = ((entry.code, self._text(entry.texts) or entry.code) for entry in entries)
        options, values = listed_options(
            ("other" if code == OTHER else code, label) for code, label in labels
        )
        return options, {id_: OTHER if code == "other" else code for id_, code in values.items()}

    def _add_matrix(
        self,
        question: LimeQuestion,
        scale: Form,
        changes: Sequence[str] = (),
        text: Text = "",
        name: str = "",
        rows: Sequence[Entry] | None = None,
    ) -> None:
        rows = question.subquestions if rows is None else rows
        name = name or question.code
        if not rows or len(scale.get("options", (1, 2))) < 2:
            why = "has no rows, or fewer than two columns"
            self._to.drop(name, self._kind(question), why)
            return
        lines, _ = self._options(rows)
        forms = matrix_forms(text or self._title(question), lines, scale, self._to.language)
        for form, own_changes in forms:
            self._add(question, form, {}, [*changes, *own_changes], name)

    def _add(
        self,
        question: LimeQuestion,
        form: Form,
        values: Mapping[str, str],
        changes: Sequence[str] = (),
        name: str = "",
    ) -> None:
        """Add a question with its texts and its condition."""
        texts: Form = {"text": self._title(question)}
        if help_text := self._text(question.help, line=False, has_answers=True):
            texts["help"] = help_text
        self._to.add(
            name or question.code,
            self._kind(question),
            {**texts, **form},
            values=values,
            changes=[*changes, *self._loss_notes()],
            condition=self._condition,
        )

    def _report_cells(self, question: LimeQuestion, number: int) -> None:
        """Report the parts of an array that are more than can be imported."""
        if number > MAX_CELLS:
            why = f"only the first {MAX_CELLS} of its {number} parts are imported"
            self._to.drop(question.code, self._kind(question), why)

    def _english(self) -> list[str]:
        return [ENGLISH_WORDS] if not self._to.language.startswith("en") else []

    # -- texts and attributes

    def _attribute(self, question: LimeQuestion, key: str) -> str:
        """Return an attribute that is the same in all languages; "" if it is not set."""
        self._arriving.add(key)
        values = question.attributes.get(key, {})
        text = (
            values.get("") or values.get(self._survey.language) or next(iter(values.values()), "")
        )
        return text.strip()

    def _localized(self, question: LimeQuestion, key: str) -> Localized:
        self._arriving.add(key)
        return question.attributes.get(key, {})

    def _title(self, question: LimeQuestion) -> Text:
        return self._text(question.texts, line=False, has_answers=True) or question.code

    def _join(self, question: LimeQuestion, part: Localized, code: str) -> Text:
        """Return the text of a question and that of one of its parts as one text."""
        row = self._text(part, has_answers=True) or code
        return joined_texts(self._title(question), row, self._to.language)

    def _plain(self, localized: Localized) -> str:
        text = localized.get(self._survey.language) or next(iter(localized.values()), "")
        return one_line(plain_text(text).text)

    def _text(self, localized: Localized, *, line: bool = True, has_answers: bool = False) -> Text:
        """Return a text without markup and equations, or a table of languages.

        `has_answers` keeps the equations, since questions can show earlier answers.
        """
        texts = {
            tag: self._clean(text, line, has_answers) for tag, text in localized.items() if text
        }
        base_text = texts.pop(self._survey.language, "") or texts.pop("", "")
        base_text = base_text or next((text for text in texts.values() if text), "")
        tagged = {self._tag(tag): text for tag, text in texts.items() if text}
        tagged.pop("", None)
        in_languages = {self._to.language: base_text} | tagged
        return in_languages if base_text and len(in_languages) > 1 else base_text

    def _tag(self, name: str) -> str:
        """Return the tag of a language of the file; "" if it is none or another one has it."""
        if name not in self._tags:
            tag = _base_tag(name)
            self._tags[name] = "" if tag in self._tags.values() else tag
        return self._tags[name]

    def _clean(self, markup: str, line: bool, has_answers: bool) -> str:
        text, losses = plain_text(markup)
        self._losses |= {f"its {loss} are left out" for loss in losses}
        if not has_answers:
            self._losses |= self._references.left_out(text)
            text = self._references.without(text)
        return one_line(text) if line else text

    def _loss_notes(self) -> list[str]:
        """Return what the current question's texts lost; several questions can be made of it."""
        return sorted(self._losses)

    def _report_losses(self, name: str, kind: str) -> None:
        for loss in self._loss_notes():
            self._to.drop(name, kind, loss)
        self._losses = set()


_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("L", "!", "O"), _Reader._list),
    "Y": _Reader._yes_no,
    "G": _Reader._words,
    "I": _Reader._languages,
    "5": _Reader._five_points,
    **dict.fromkeys(("M", "P"), _Reader._multiple),
    "R": _Reader._ranking,
    "N": _Reader._number,
    "K": _Reader._numbers,
    "D": _Reader._date,
    **dict.fromkeys(("A", "B", "C", "E", "F", "H"), _Reader._array),
    "1": _Reader._two_scales,
    ":": _Reader._number_array,
    "X": _Reader._display,
}


def _base_tag(name: str) -> str:
    """Return the tag of a language of LimeSurvey, which has variants that are no regions.

    >>> _base_tag("de-informal"), _base_tag("zh-Hant-HK"), _base_tag("?")
    ('de', 'zh-Hant-HK', '')
    """
    return language_tag(name) or language_tag(name.partition("-")[0])


MAX_POINTS = 100
"""Maximum number of points of a scale."""


def _numbered(points: range) -> Form:
    """Return the scale of these numbers."""
    if points.step == 1:
        return {"low": points[0], "high": points[-1]}
    options, _ = listed_options((str(point), str(point)) for point in points)
    return {"options": options}


def _stacked(parts: Sequence[Localized]) -> Localized:
    """Return texts one below the other, in each of their languages."""
    tags = dict.fromkeys(tag for part in parts for tag in part)
    return {tag: "<br><br>".join(filter(None, _in_tag(parts, tag))) for tag in tags}


def _in_tag(parts: Sequence[Localized], tag: str) -> Iterator[str]:
    return (part.get(tag, "") for part in parts)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", text) is not None


def _day(text: str, end: str) -> str:
    """Return the day that an attribute states, as a date or a year; "" for equations.

    >>> _day("2020-02-29 12:00", "01-01"), _day("1990", "12-31"), _day("now", "01-01")
    ('2020-02-29', '1990-12-31', '')
    """
    if re.fullmatch(r"[0-9]{4}", text):
        text = f"{text}-{end}"
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError:
        return ""
