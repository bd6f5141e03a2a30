"""Differences between two versions of a survey, and what they mean for comparing estimates.

The list of differences is complete: a key of a definition that has no label here appears under its
own name.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from survey.mechanism.composition import format_epsilon, log_rounded_up
from survey.questionnaire.definition import Definition
from survey.questionnaire.kinds import KINDS, PublishedQuestion
from survey.questionnaire.kinds.base import EPOCH
from survey.questionnaire.privacy_loss import Bounds, becomes, report_strength
from survey.results.estimates.table import MECHANISMS
from survey.results.question_statistics import has_same_answers

Form = Mapping[str, Any]
"""A part of the canonical form of a definition."""

Verdict = Literal["yes", "with care", "no"]
"""Whether the estimates of a question can be compared over the two versions."""

MIN_SIMILARITY = 0.4
"""Minimum similarity for marking changed words; less similar texts are shown in full."""

WORDS = re.compile(r"\S+|\n+")


@dataclass(frozen=True)
class Segment:
    """A part of a text that is in both versions, or only in one."""

    kind: Literal["same", "removed", "added"]
    text: str


@dataclass(frozen=True)
class Change:
    """One difference; `before` or `after` is empty if that version has no value.

    `note` states the consequence in a sentence. `is_text` is true for texts of researchers.
    """

    label: str
    before: str
    after: str
    note: str = ""
    is_text: bool = False

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The words of both versions in order; empty if the texts are not similar."""
        return text_segments(self.before, self.after) if self.is_text else ()


@dataclass(frozen=True)
class QuestionChanges:
    """The differences of one question.

    `number_before` and `number_after` are its positions in the survey, 0 if a version lacks it.
    `reasons` explain why the estimates cannot be compared, or only with care.
    """

    id: str
    text: str
    number_before: int
    number_after: int
    is_moved: bool
    changes: tuple[Change, ...]
    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def status(self) -> Literal["added", "removed", "moved", "changed", "same"]:
        """The most important difference."""
        if not self.number_before:
            return "added"
        if not self.number_after:
            return "removed"
        if self.is_moved:
            return "moved"
        return "changed" if self.changes else "same"


@dataclass(frozen=True)
class VersionChanges:
    """All differences between two versions, in the order of the newer version.

    `survey` contains the differences of the whole survey. A removed question appears after the
    question that it followed.
    """

    survey: tuple[Change, ...]
    questions: tuple[QuestionChanges, ...]

    @property
    def is_empty(self) -> bool:
        """Whether respondents would see and send the same in both versions."""
        return not self.survey and not self.changed

    @property
    def changed(self) -> tuple[QuestionChanges, ...]:
        """The questions with a difference."""
        return tuple(question for question in self.questions if question.status != "same")

    @property
    def same(self) -> tuple[QuestionChanges, ...]:
        """The questions without a difference."""
        return tuple(question for question in self.questions if question.status == "same")

    def with_verdict(self, verdict: Verdict) -> tuple[QuestionChanges, ...]:
        """Return the questions of both versions with a verdict."""
        return tuple(
            question
            for question in self.questions
            if question.verdict == verdict and question.number_before and question.number_after
        )


def compare_versions(old: Definition, new: Definition) -> VersionChanges:
    """Return the differences between two definitions, except their version numbers."""
    old_form, new_form = json.loads(old.canonical), json.loads(new.canonical)
    comparison = _Comparison(old, new, old_form, new_form)
    return VersionChanges(tuple(comparison.of_survey()), tuple(comparison.of_questions()))


class _Comparison:
    """Two definitions, with their canonical forms."""

    def __init__(self, old: Definition, new: Definition, old_form: Form, new_form: Form) -> None:
        self._old, self._new = old, new
        self._old_form, self._new_form = old_form, new_form
        self._old_questions = {question.id: question for question in old.questions}
        self._new_questions = {question.id: question for question in new.questions}
        self._old_parts, self._new_parts = _question_forms(old_form), _question_forms(new_form)
        common = [name for name in self._new_questions if name in self._old_questions]
        places = [list(self._old_questions).index(name) for name in common]
        unmoved = longest_increasing(places)
        self._moved = {name for i, name in enumerate(common) if i not in unmoved}
        self._unmoved = [name for name in common if name not in self._moved]
        self._common_languages = [tag for tag in new.languages[1:] if tag in old.languages[1:]]

    # The whole survey

    def of_survey(self) -> Iterator[Change]:
        for name, label in SURVEY_LABELS.items():
            before, after = self._old_form.get(name, ""), self._new_form.get(name, "")
            if before != after:
                yield Change(label, before, after, is_text=True)
        for name, (label, words) in SETTINGS.items():
            before, after = _setting(self._old_form, name), _setting(self._new_form, name)
            if before != after:
                texts = (words.get(value, str(value)) for value in (before, after))
                yield _change(label, texts, SETTING_NOTES.get(name, ""))
        yield from self._sampling()
        yield from self._languages()
        yield from self._whole_report()
        yield from self._pages()
        for name in sorted({*self._old_form, *self._new_form} - KNOWN_KEYS):
            yield from _other_key(name, self._old_form, self._new_form)

    def _sampling(self) -> Iterator[Change]:
        before, after = self._old_form["sampling"], self._new_form["sampling"]
        if before != after:
            yield Change(
                "Questions per respondent",
                _sampling_text(self._old),
                _sampling_text(self._new),
                "Estimates stay comparable; their margins change with the number of answers.",
            )

    def _languages(self) -> Iterator[Change]:
        old, new = self._old.languages, self._new.languages
        if old[0] != new[0]:
            yield Change("Main language", old[0], new[0])
        if set(old) != set(new):
            yield Change("Languages", ", ".join(old), ", ".join(new))
        for tag in self._common_languages:
            before, after = (form["translations"][tag] for form in (self._old_form, self._new_form))
            for name, label in SURVEY_LABELS.items():
                yield from _text_change(f"{label} ({tag})", before.get(name), after.get(name))
            titles = [[page["title"] for page in texts["pages"]] for texts in (before, after)]
            yield from _titles_change(f"Page titles ({tag})", *titles)

    def _whole_report(self) -> Iterator[Change]:
        if self._old.ratio == self._new.ratio:
            return
        yield Change(
            "Privacy loss of one complete response",
            f"{_privacy_text(self._old.ratio)} ({report_strength(self._old)})",
            f"{_privacy_text(self._new.ratio)} ({report_strength(self._new)})",
            "Respondents read this before they answer.",
        )

    def _pages(self) -> Iterator[Change]:
        old, new = self._old_form["pages"], self._new_form["pages"]
        titles = [[page["title"] for page in pages] for pages in (old, new)]
        yield from _titles_change("Page titles", *titles)
        old_page, new_page = _page_numbers(old), _page_numbers(new)
        for first, second in pairwise(self._unmoved):
            was_together = old_page[first] == old_page[second]
            is_together = new_page[first] == new_page[second]
            if was_together != is_together:
                pair = " and ".join(self._name(question) for question in (first, second))
                yield _change(f"Pages of {pair}", map(_together_text, (was_together, is_together)))
        # Moved and added questions list their page among their own changes.
        if len(old) != len(new):
            yield Change("Number of pages", str(len(old)), str(len(new)))

    # Questions

    def of_questions(self) -> Iterator[QuestionChanges]:
        old_numbers, new_numbers = _numbers(self._old), _numbers(self._new)
        for name in _merged_order(list(old_numbers), list(new_numbers)):
            numbers = old_numbers.get(name, 0), new_numbers.get(name, 0)
            if name not in new_numbers:
                yield self._removed(name, numbers)
            elif name not in old_numbers:
                yield self._added(name, numbers)
            else:
                changes = tuple(self._question_changes(name))
                verdict, reasons = self._verdict(name)
                text = self._new_questions[name].text
                is_moved = name in self._moved
                yield QuestionChanges(name, text, *numbers, is_moved, changes, verdict, reasons)

    def _removed(self, name: str, numbers: tuple[int, int]) -> QuestionChanges:
        text = self._old_questions[name].text
        reasons = ("The newer version does not ask this question.",)
        return QuestionChanges(name, text, *numbers, False, (), "no", reasons)

    def _added(self, name: str, numbers: tuple[int, int]) -> QuestionChanges:
        question = self._new_questions[name]
        reason = "The older version does not ask this question."
        for other in self._old_questions.values():
            if other.text == question.text and other.id not in self._new_questions:
                reason = (
                    f"The older version asks this question with the id {other.id}. Only questions "
                    "with the same id are compared."
                )
        ratio = self._new.linked_ratios[name]
        page = Change("Page", "", str(self._new_parts[name]["page"]))
        changes = (page, Change("Privacy", "", _privacy_text(ratio)))
        return QuestionChanges(name, question.text, *numbers, False, changes, "no", (reason,))

    def _question_changes(self, name: str) -> Iterator[Change]:
        old, new = self._old_questions[name], self._new_questions[name]
        before, after = self._old_parts[name], self._new_parts[name]
        if name in self._moved and before["page"] != after["page"]:
            yield Change("Page", str(before["page"]), str(after["page"]))
        if old.type != new.type:
            yield _change("Type", (KINDS[question.type].label for question in (old, new)))
        for key, label in QUESTION_LABELS.items():
            yield from _text_change(label, before.get(key), after.get(key))
        yield from _option_changes(before["options"], after["options"])
        if before["grid"] != after["grid"]:
            yield _change("Possible answers", map(_grid_text, (old, new)))
        if before["max_ticks"] != after["max_ticks"]:
            yield _change("Maximum number of answers", (str(q.max_ticks) for q in (old, new)))
        if before["ask_if"] != after["ask_if"]:
            texts = (_condition_text(old, self._old), _condition_text(new, self._new))
            yield _change("Who is asked", texts)
        yield from _display_changes(before, after)
        yield from self._privacy_changes(name)
        for key in sorted({*before, *after} - KNOWN_QUESTION_KEYS):
            yield from _other_key(key, before, after)
        for tag in self._common_languages:
            yield from _translation_changes(tag, before["texts"][tag], after["texts"][tag])

    def _privacy_changes(self, name: str) -> Iterator[Change]:
        old, new = self._old_questions[name], self._new_questions[name]
        ratios = self._old.linked_ratios[name], self._new.linked_ratios[name]
        before, after = self._old_parts[name], self._new_parts[name]
        if ratios[0] != ratios[1]:
            note = "Weaker protection" if ratios[1] > ratios[0] else "Stronger protection"
            own = old.channel.ratio, new.channel.ratio
            if own[0] == own[1]:
                note += ", because of the questions linked to this one"
            yield _change("Privacy", map(_privacy_text, ratios), f"{note}.")
        if old.mechanism != new.mechanism:
            yield _change("Mechanism", (MECHANISMS[q.mechanism] for q in (old, new)))
        elif before["channel"] != after["channel"] and ratios[0] == ratios[1]:
            yield Change(
                "Randomization", "", "", "The probabilities differ, the privacy loss does not."
            )
        if before["stated"] != after["stated"]:
            yield _change("Stated privacy level", map(_stated_text, (old, new)))
        if before.get("joint") != after.get("joint"):
            yield _change("Randomized together with", map(_joint_text, (old, new)))

    def _verdict(self, name: str) -> tuple[Verdict, tuple[str, ...]]:
        old, new = self._old_questions[name], self._new_questions[name]
        before, after = self._old_parts[name], self._new_parts[name]
        if old.type != new.type:
            return "no", ("Its type differs.",)
        if not has_same_answers(old, new):
            return "no", ("Its answers differ.",)
        reasons = [
            reason for key, reason in CARE_REASONS.items() if before.get(key) != after.get(key)
        ]
        labels = [[option["label"] for option in part["options"]] for part in (before, after)]
        if labels[0] != labels[1]:
            reasons.append("The texts of its answers differ.")
        shown = [[option.get("picture") for option in part["options"]] for part in (before, after)]
        if shown[0] != shown[1]:
            reasons.append("The pictures of its answers differ.")
        if name in self._moved:
            reasons.append("It was moved: earlier questions can influence answers.")
        return ("with care", tuple(reasons)) if reasons else ("yes", ())

    def _name(self, question: str) -> str:
        return f"“{self._new_questions[question].text}”"


SURVEY_LABELS: Mapping[str, str] = {
    "title": "Title",
    "organization": "Who is asking",
    "introduction": "Introduction",
    "consent": "Consent",
    "ethics": "Ethics approval",
    "helpline": "Where to find help",
    "contact": "Contact",
    "thanks": "Thanks after sending",
}

_YES_NO: Mapping[Any, str] = {True: "yes", False: "no", "": "no"}

SETTINGS: Mapping[str, tuple[str, Mapping[Any, str]]] = {
    "slug": ("Short name", {}),
    "access": ("Who can answer", {"": "everyone with the link", "invitation": "invited people"}),
    "bucket": ("Stored date of a release", {"": "none", "week": "the week", "day": "the day"}),
    "kiosk": ("For shared devices", _YES_NO),
    "field": ("Field mode: last day for uploads", {"": "no field mode"}),
    "theme": ("Accent color", {"": "standard"}),
    "exit": ("Destination of “Leave now”", {"": "Wikipedia"}),
    "layout": (
        "Questions on each screen",
        {
            "": "one in surveys of up to 20 questions, otherwise whole pages",
            "questions": "one",
            "pages": "whole pages",
        },
    ),
    "allow_skip_logic": ("Skip logic allowed", _YES_NO),
}
"""The label of each setting, and the words for its values."""


def _setting(form: Mapping[str, Any], name: str) -> Any:
    """Return the value of a setting; for field mode only its day, because each key is new."""
    value = form.get(name, "")
    return value["until"] if name == "field" and value else value


SETTING_NOTES: Mapping[str, str] = {
    "access": "Different people may answer, so compare estimates with care.",
    "bucket": "Results over time need stored dates.",
}

QUESTION_LABELS: Mapping[str, str] = {"text": "Question", "help": "Help", "topic": "Topic"}

CARE_REASONS: Mapping[str, str] = {
    "text": "Its text differs.",
    "help": "Its help text differs.",
    "ask_if": "Different people are asked this question.",
    "shuffled": "Its answers appear in a different order.",
    "slider": "Its slider, or a label on it, differs.",
    "channel": "Its randomization differs. Estimates can be compared, but shares of reports "
    "cannot, and people may answer differently.",
}
"""Reasons to compare estimates with care, by the key of a question that differs."""

KNOWN_KEYS = frozenset(
    (
        *SURVEY_LABELS, *SETTINGS, "sampling", "language", "translations", "pages",
        # These depend on the questions or number the versions.
        "format", "version", "report_bytes",
    )
)  # fmt: skip

KNOWN_QUESTION_KEYS = frozenset(
    (
        *QUESTION_LABELS, "id", "type", "options", "grid", "max_ticks", "ask_if", "shuffled",
        "slider", "mechanism", "stated", "channel", "joint", "matrix", "piped", "page", "texts",
        # These depend on the answers.
        "alone", "opt_out", "not_applicable",
    )
)  # fmt: skip


def text_segments(before: str, after: str) -> tuple[Segment, ...]:
    """Return the words of two texts in one sequence; empty if the texts are not similar.

    A single common word between two changes becomes part of them, because single words between
    marks are hard to read and hard to follow by ear.

    >>> text_segments("Were you hurt at work?", "Were you injured at work?")  # doctest: +ELLIPSIS
    (Segment(kind='same', text='Were you'), Segment(kind='removed', text='hurt'), ...)
    """
    old, new = WORDS.findall(before), WORDS.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if old == new or matcher.ratio() < MIN_SIMILARITY:
        return ()
    segments: list[Segment] = []
    for old_words, new_words, is_same in _runs(matcher, old, new):
        if is_same:
            segments.append(Segment("same", " ".join(new_words)))
            continue
        if old_words:
            segments.append(Segment("removed", " ".join(old_words)))
        if new_words:
            segments.append(Segment("added", " ".join(new_words)))
    return tuple(segments)


def _runs(
    matcher: SequenceMatcher[str], old: Sequence[str], new: Sequence[str]
) -> list[tuple[list[str], list[str], bool]]:
    """Return the runs of equal and different words; single equal words join their neighbors."""
    runs: list[tuple[list[str], list[str], bool]] = []
    codes = matcher.get_opcodes()
    for place, (code, i, j, k, m) in enumerate(codes):
        is_between = 0 < place < len(codes) - 1
        is_same = code == "equal" and not (is_between and j - i == 1)
        if runs and not is_same and not runs[-1][2]:
            runs[-1][0].extend(old[i:j])
            runs[-1][1].extend(new[k:m])
        else:
            runs.append((list(old[i:j]), list(new[k:m]), is_same))
    return runs


def longest_increasing(numbers: Sequence[int]) -> set[int]:
    """Return the places of a longest increasing subsequence of different numbers.

    The other places are the fewest that must move to sort the numbers (Schensted 1961).

    >>> sorted(longest_increasing([3, 0, 1, 2]))
    [1, 2, 3]
    """
    ends: list[int] = []  # the place of the smallest end of a subsequence, by its length - 1
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect_left([numbers[end] for end in ends], number)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [place]
    places: set[int] = set()
    place = ends[-1] if ends else -1
    while place >= 0:
        places.add(place)
        place = before[place]
    return places


def _merged_order(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return all ids in the new order; a removed id follows its predecessor in the old order."""
    order = list(new)
    for place, name in enumerate(old):
        if name not in order:
            order.insert(order.index(old[place - 1]) + 1 if place else 0, name)
    return order


def _numbers(definition: Definition) -> dict[str, int]:
    return {question.id: number for number, question in enumerate(definition.questions, 1)}


def _page_numbers(pages: Iterable[Form]) -> dict[str, int]:
    return {
        question["id"]: number
        for number, page in enumerate(pages, 1)
        for question in page["questions"]
    }


def _question_forms(form: Form) -> dict[str, Form]:
    """Return the form of each question with its page and its texts in other languages."""
    translations = form.get("translations", {})
    return {
        question["id"]: {
            **question,
            "page": i + 1,
            "texts": {
                tag: texts["pages"][i]["questions"][j]
                | {"ids": [option["id"] for option in question["options"]]}
                for tag, texts in translations.items()
            },
        }
        for i, page in enumerate(form["pages"])
        for j, question in enumerate(page["questions"])
    }


def _change(label: str, texts: Iterable[str], note: str = "") -> Change:
    before, after = texts
    return Change(label, before, after, note)


def _text_change(label: str, before: str | None, after: str | None) -> Iterator[Change]:
    if (before or "") != (after or ""):
        yield Change(label, before or "", after or "", is_text=True)


def _titles_change(label: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Change]:
    if list(before) == list(after) or not any((*before, *after)):
        return
    if len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
            yield from _text_change(f"{label}, page {number}", old, new)
    else:
        yield _change(label, (", ".join(filter(None, titles)) for titles in (before, after)))


def _option_changes(before: Sequence[Form], after: Sequence[Form]) -> Iterator[Change]:
    old = {option["id"]: option["label"] for option in before}
    new = {option["id"]: option["label"] for option in after}
    removed = {label: name for name, label in old.items() if name not in new}
    renamed: set[str] = set()
    pictures = [
        {option["id"]: option.get("picture") for option in part} for part in (before, after)
    ]
    for name, label in new.items():
        if name in old:
            yield from _text_change("Answer", old[name], label)
            if pictures[0][name] != pictures[1][name]:
                yield _change(
                    f"Picture of the answer “{label}”",
                    (_picture_text(part[name]) for part in pictures),
                )
        elif label in removed:
            renamed.add(label)
            yield Change(f"Id of the answer “{label}”", removed[label], name)
        else:
            yield Change("Answer added", "", label, is_text=True)
    for name, label in old.items():
        if name not in new and label not in renamed:
            yield Change("Answer removed", label, "", is_text=True)
    common = [name for name in old if name in new]
    if common != [name for name in new if name in old]:
        yield _change("Order of the answers", ("; ".join(texts.values()) for texts in (old, new)))


def _picture_descriptions(before: Form, after: Form) -> Iterator[tuple[str, list[str]]]:
    """Yield each answer's id with the translated descriptions of its picture in both versions."""
    old, new = (
        dict(zip(part["ids"], part.get("pictures", ()), strict=False)) for part in (before, after)
    )
    for name in {**old, **new}:
        yield name, [old.get(name, ""), new.get(name, "")]


def _picture_text(picture: Form | None) -> str:
    return f"{picture['alt']} ({picture['sha256'][:8]})" if picture else "none"


def _translation_changes(tag: str, before: Form, after: Form) -> Iterator[Change]:
    for key, label in (*QUESTION_LABELS.items(), ("unit", "Unit")):
        yield from _text_change(f"{label} ({tag})", before.get(key), after.get(key))
    for end, label in (("low", "Label of the lowest"), ("high", "Label of the highest")):
        ends = (form.get("slider", {}).get(end) for form in (before, after))
        yield from _text_change(f"{label} ({tag})", *ends)
    for label, texts in _picture_descriptions(before, after):
        yield from _text_change(f"Description of the picture of “{label}” ({tag})", *texts)
    old = dict(zip(before["ids"], before["options"], strict=True))
    new = dict(zip(after["ids"], after["options"], strict=True))
    for name, text in new.items():
        if name in old:
            yield from _text_change(f"Answer ({tag})", old[name], text)


def _grid_text(question: PublishedQuestion) -> str:
    grid = question.grid
    if grid is None:
        return ""
    low, high = grid.values[0], grid.values[-1]
    step = grid.step / 10**grid.decimals
    if question.kind.is_date:
        first, last = (EPOCH + timedelta(days=int(day)) for day in (low, high))
        return f"{first} to {last} in steps of {step:g} days"
    unit = f" {grid.unit}" if grid.unit else ""
    decimals = f", {grid.decimals} decimals" if grid.decimals else ""
    return f"{low:g} to {high:g}{unit} in steps of {step:g}{decimals}"


def _display_changes(before: Form, after: Form) -> Iterator[Change]:
    """Yield the differences in how respondents see the same answers."""
    if before.get("shuffled") != after.get("shuffled"):
        order = ("in the order of the survey", "in a random order on each device")
        yield _change(
            "Order of the answers", (order[bool(part.get("shuffled"))] for part in (before, after))
        )
    if before.get("slider") != after.get("slider"):
        yield _change("How the number is entered", map(_entry_text, (before, after)))


def _entry_text(part: Form) -> str:
    if "slider" not in part:
        return "typed"
    labels = " to ".join(
        f"“{part['slider'][end]}”" for end in ("low", "high") if part["slider"][end]
    )
    return f"on a slider, {labels}" if labels else "on a slider"


def _condition_text(question: PublishedQuestion, definition: Definition) -> str:
    condition = question.ask_if
    if condition is None:
        return "everyone"
    source = next(other for other in definition.questions if other.id == condition.question)
    labels = {option.id: option.label for option in source.options}
    answers = " or ".join(f"“{labels.get(name, name)}”" for name in condition.options)
    return f"people who answered {answers} to “{source.text}”"


def _privacy_text(ratio: Fraction) -> str:
    """Describe an odds factor by its epsilon and its risk."""
    epsilon = format_epsilon(log_rounded_up(ratio))
    return f"ε {epsilon}: a suspicion of 10% {becomes(Bounds.of(ratio).from10)}"


def _stated_text(question: PublishedQuestion) -> str:
    return ", ".join(f"{way.replace('_', ' ')} {value}" for way, value in question.stated.items())


def _joint_text(question: PublishedQuestion) -> str:
    if question.joint is None:
        return "no other question"
    others = [name for name in question.joint.questions if name != question.id]
    how = " (half-space)" if question.joint.mechanism == "half_space" else ""
    return f"{', '.join(others)}{how}, ε {format_epsilon(question.joint.channel.epsilon)}"


def _sampling_text(definition: Definition) -> str:
    if not definition.is_sampled:
        return "all"
    groups = ", ".join(" with ".join(group) for group in definition.groups if len(group) > 1)
    together = f"; asked together: {groups}" if groups else ""
    return f"{definition.drawn} of {len(definition.groups)}{together}"


def _together_text(is_together: bool) -> str:
    return "on one page" if is_together else "on different pages"


def _other_key(name: str, before: Form, after: Form) -> Iterator[Change]:
    if before.get(name) != after.get(name):
        yield _change(name, (json.dumps(form.get(name), default=str) for form in (before, after)))
