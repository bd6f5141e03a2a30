"""A draft: a survey as its researchers have written it so far, valid or not.

Every text is a table of language = text. Pages, questions and options have keys, so that an edit
reaches its target after others have moved it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from survey.errors import NotFoundError, StoreError
from survey.questionnaire.kinds import DEFAULT_KIND, kind_of
from survey.questionnaire.kinds.base import (
    NONE_ID,
    NOT_APPLICABLE_ID,
    OPT_OUT_ID,
    USUAL_KEYS,
)
from survey.questionnaire.texts import SURVEY_TEXTS
from survey.respondent_texts import SOURCE, closest_language, say

Texts = Mapping[str, str]
"""One text by language tag."""

Question = Mapping[str, Any]
"""A question in a draft: the keys of `EMPTY_QUESTION`, and its `key`."""

QUESTION_TEXTS = (
    *("text", "help", "topic", "unit", "low_label", "high_label"),
    *("none_of_these_label", "does_not_apply_label", "prefer_not_to_say_label"),
)
"""The texts of a question that can be translated, apart from the labels of its options."""

OPTION_TEXTS = ("label", "picture_alt")
"""The texts of an option that can be translated."""

EMPTY_OPTION: Mapping[str, Any] = {"id": "", "label": {}, "picture": "", "picture_alt": {}}
"""An option without its key; `picture` is the SHA-256 of a stored picture, or ""."""

EMPTY_QUESTION: Question = {
    "id": "",
    "type": DEFAULT_KIND.type,
    **{name: {} for name in QUESTION_TEXTS},
    "options": (),
    "rows": (),
    **dict.fromkeys(("low", "high", "step", "max_ticks"), ""),
    "shuffle_options": False,
    "slider": False,
    "prefer_not_to_say": True,
    "does_not_apply": False,
    "ask_options": (),
    **dict.fromkeys(("ask_question", "mechanism", "parameters", "way", "value"), ""),
}


def usual_label(name: str, tag: str) -> str:
    """Return the interface's label of an option in a language; "" if the interface lacks it.

    >>> usual_label("yes", "de-AT"), usual_label("yes", "nl")
    ('Ja', '')
    """
    language = closest_language(tag)
    return say(language, USUAL_KEYS[name]) if language else ""


def is_blank(question: Question) -> bool:
    """Return whether a question is as it was added: its mistakes are no news then."""
    own = ("key", "id", "type")
    return {**question, **dict.fromkeys(own)} == {**EMPTY_QUESTION, **dict.fromkeys(own)}


AUTOMATIC = "auto"
"""As `questions_per_person`: ask as many questions as keep a whole report from being weak.

New drafts start with it, because a third question at the standard privacy level would change the
odds by a factor of 27. The questions keep the privacy level that their author sees beside them."""

EMPTY_SURVEY: Mapping[str, Any] = {
    "slug": "",
    "language": SOURCE,
    **{name: {} for name in SURVEY_TEXTS},
    "labels": {},
    "allow_skip_logic": False,
    "questions_per_person": "",
    "together": (),
    "bucket": "none",
    "access": "open",
    "kiosk": False,
    "field_until": "",
    "theme": "",
    "quick_exit": "",
    "layout": "auto",
}
"""`labels` contains the usual labels that a researcher has reworded, by the option's id."""

EMPTY_PLAN: Mapping[str, str] = dict.fromkeys(
    ("n", "margin", "total", "crossings", "opens", "closes", "most", "strata"), ""
)
"""`total` is the maximum epsilon of a design, `crossings` lists questions to cross-tabulate."""

Shares = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class TypedShares:
    """The true shares that a researcher typed last for the draft's test run.

    `typed` holds the form fields, `shares` their values. `simulated` says whether the test run has
    responses drawn from these shares, `differed` whether it also has responses from other shares.
    """

    typed: Mapping[str, str]
    shares: Shares
    simulated: bool = False
    differed: bool = False

    def after_simulation(self, typed: Mapping[str, str], shares: Shares) -> TypedShares:
        """Return the state after one more simulation."""
        differs = self.simulated and (self.differed or self.form["shares"] != _as_lists(shares))
        return TypedShares(typed, _as_lists(shares), simulated=True, differed=differs)

    def reset(self) -> TypedShares:
        """Return the state after the test run was rebuilt or deleted: only the shares remain."""
        return replace(self, simulated=False, differed=False)

    @property
    def form(self) -> dict[str, Any]:
        """The form that the store keeps."""
        return {**self.__dict__, "typed": dict(self.typed), "shares": _as_lists(self.shares)}


NO_SHARES = TypedShares({}, {})


def _as_lists(shares: Shares) -> dict[str, list[float]]:
    return {name: list(values) for name, values in shares.items()}


@dataclass(frozen=True)
class DraftPage:
    """Questions shown together."""

    key: int
    title: Texts
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class DraftContent:
    """Everything in a draft.

    `languages` are those of its translations. `last_key` is the last key that a page, question or
    option received. `typed_shares` belong to the test run and are not published.
    """

    survey: Mapping[str, Any]
    languages: tuple[str, ...]
    pages: tuple[DraftPage, ...]
    plan: Mapping[str, str]
    last_key: int
    typed_shares: TypedShares = NO_SHARES

    @classmethod
    def new(cls, title: str, slug: str) -> DraftContent:
        """Return a draft of one page without questions."""
        survey = {
            **EMPTY_SURVEY,
            "title": {SOURCE: title},
            "slug": slug,
            "questions_per_person": AUTOMATIC,
        }
        return cls(survey, (), (DraftPage(1, {}, ()),), EMPTY_PLAN, 1)

    @property
    def own_language(self) -> str:
        """The language in which the survey is written."""
        return str(self.survey["language"])

    @property
    def title(self) -> str:
        """The title in lists."""
        return str(self.survey["title"].get(self.own_language) or "Untitled survey")

    @property
    def questions(self) -> Iterator[Question]:
        """All questions in their order."""
        return (question for page in self.pages for question in page.questions)

    def question(self, key: int) -> Question:
        """Return the question with a key; raises NotFoundError if it was removed."""
        for question in self.questions:
            if question["key"] == key:
                return question
        raise NotFoundError("this question was removed from the draft")

    def page(self, key: int) -> DraftPage:
        """Return the page with a key; raises NotFoundError if it was removed."""
        for page in self.pages:
            if page.key == key:
                return page
        raise NotFoundError("this page was removed from the draft")

    def companion(self, name: str) -> tuple[str, bool]:
        """Return the id of the question asked together with a question, "" if there is none.

        Also return whether both answers are randomized jointly.
        """
        others, is_joint = self.companions(name)
        return next(iter(others), ""), is_joint

    def companions(self, name: str) -> tuple[list[str], bool]:
        """Return the ids of all questions that belong together with one, and whether jointly."""
        for declared in self.survey["together"]:
            if name and name in declared["questions"]:
                others = [id_ for id_ in declared["questions"] if id_ != name]
                return others, bool(declared.get("joint", False))
        return [], False

    @property
    def topics(self) -> dict[str, Texts]:
        """The topics of the questions in all languages, by their text in the own language.

        Questions share a topic if it is written alike in the own language. A translation that only
        one of them has belongs to all.
        """
        topics: dict[str, Texts] = {}
        for question in self.questions:
            if topic := question["topic"].get(self.own_language):
                topics[topic] = {**question["topic"], **topics.get(topic, {})}
        return topics

    def topic_texts(self, question: Question) -> Texts:
        """Return the topic of a question in all languages; empty if it has none."""
        return self.topics.get(question["topic"].get(self.own_language, ""), {})

    @cached_property
    def usual_labels(self) -> dict[str, Texts]:
        """The labels of `USUAL_KEYS`, by id, in the draft's languages that the interface has.

        The draft's own language always has labels: English ones if the interface lacks it.
        """
        labels: dict[str, Texts] = {}
        for name, key in USUAL_KEYS.items():
            usual = {self.own_language: say(SOURCE, key)}
            for tag in (self.own_language, *self.languages):
                if label := usual_label(name, tag):
                    usual[tag] = label
            labels[name] = {**usual, **self.survey["labels"].get(name, {})}
        return labels

    def usual_in(self, question: Question) -> Iterator[str]:
        """Yield the options of a question that have their usual labels, by id."""
        kind = kind_of(question)
        yield from (option["id"] for option in kind.default_options())
        offered = {
            NONE_ID: f"{NONE_ID}_label" in kind.fields,
            # A skipped question counts as "does not apply".
            NOT_APPLICABLE_ID: question[NOT_APPLICABLE_ID] or question["ask_question"],
            OPT_OUT_ID: question[OPT_OUT_ID],
        }
        for name, is_offered in offered.items():
            if is_offered and not question[f"{name}_label"].get(self.own_language):
                yield name

    def with_question(self, key: int, question: Question) -> DraftContent:
        """Return the draft with a question replaced; a removed one is added at the end."""
        if all(other["key"] != key for other in self.questions):
            last = self.pages[-1]
            return self.with_page(replace(last, questions=(*last.questions, question)))

        def replace_question(page: DraftPage) -> DraftPage:
            questions = tuple(question if q["key"] == key else q for q in page.questions)
            return replace(page, questions=questions)

        return self.map_pages(replace_question)

    def with_page(self, page: DraftPage) -> DraftContent:
        """Return the draft with the page of the same key replaced."""
        return self.map_pages(lambda old: page if old.key == page.key else old)

    def map_pages(self, change: Callable[[DraftPage], DraftPage]) -> DraftContent:
        """Return the draft with every page changed."""
        return replace(self, pages=tuple(map(change, self.pages)))

    def map_texts(self, change: Callable[[Texts], Texts]) -> DraftContent:
        """Return the draft with every text changed."""

        def change_question(question: Question) -> Question:
            texts = {name: change(question[name]) for name in QUESTION_TEXTS}
            options = tuple(
                {**option, **{name: change(option.get(name, {})) for name in OPTION_TEXTS}}
                for option in question["options"]
            )
            rows = tuple({**row, "text": change(row["text"])} for row in question["rows"])
            return {**question, **texts, "options": options, "rows": rows}

        texts = {name: change(self.survey[name]) for name in SURVEY_TEXTS}
        pages = tuple(
            DraftPage(page.key, change(page.title), tuple(map(change_question, page.questions)))
            for page in self.pages
        )
        labels = {name: change(self.survey["labels"].get(name, {})) for name in USUAL_KEYS}
        labels = {name: label for name, label in labels.items() if label}
        return replace(self, survey={**self.survey, **texts, "labels": labels}, pages=pages)

    def to_json(self) -> str:
        """Return the form that the store keeps."""
        form = {
            "survey": self.survey,
            "languages": self.languages,
            "pages": [page.__dict__ for page in self.pages],
            "plan": self.plan,
            "used": self.last_key,
            "tried": self.typed_shares.form,
        }
        return json.dumps(form, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> DraftContent:
        """Read back what `to_json` wrote; raise StoreError for anything else."""
        try:
            form = json.loads(text)
            return cls(
                survey={
                    **EMPTY_SURVEY,
                    **form["survey"],
                    "together": tuple(form["survey"].get("together", ())),
                },
                languages=tuple(form["languages"]),
                pages=tuple(_page(page) for page in form["pages"]),
                plan={**EMPTY_PLAN, **form["plan"]},
                last_key=form["used"],
                typed_shares=TypedShares(**form["tried"]) if "tried" in form else NO_SHARES,
            )
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise StoreError(
                "this draft is damaged, or a newer version of the program saved it"
            ) from error


def _page(form: Mapping[str, Any]) -> DraftPage:
    questions = tuple(
        {
            **EMPTY_QUESTION,
            **question,
            "options": tuple({**EMPTY_OPTION, **option} for option in question.get("options", ())),
            "rows": tuple(question.get("rows", ())),
            "ask_options": tuple(question.get("ask_options", ())),
        }
        for question in form["questions"]
    )
    return DraftPage(form["key"], form["title"], questions)


MAX_LENGTH = 40
"""Maximum length of an id made from a text; one written by hand may be longer."""


def identifier(text: str) -> str:
    """Return an id made from a text; empty if the text has no ASCII letter or digit.

    >>> identifier("Más de una vez (2+)"), identifier("10 or more"), identifier("никогда")
    ('mas_de_una_vez_2', 'o10_or_more', '')
    """
    words = _words(text, "_")
    return f"o{words}" if words[:1].isdigit() else words


def slug(text: str) -> str:
    """Return a short name made from a title; "survey" if the title has no ASCII letter or digit.

    >>> slug("Work & health, 2026"), slug("опрос")
    ('work-health-2026', 'survey')
    """
    return _words(text, "-") or "survey"


def free_identifier(base: str, existing: Collection[str]) -> str:
    """Return a base, or the first of its numbered variants that does not exist yet.

    >>> free_identifier("q1", {"q1", "q2"}), free_identifier("often", {"often"})
    ('q3', 'often_2')
    """
    if base not in existing:
        return base
    numbered = re.fullmatch(r"(.*?)([0-9]+)", base)
    stem, start = (numbered[1], int(numbered[2])) if numbered else (f"{base}_", 1)
    variants = (f"{stem}{n}" for n in range(start + 1, start + len(existing) + 2))
    return next(name for name in variants if name not in existing)


def _words(text: str, between: str) -> str:
    """Return the ASCII letters and digits of a text, with a separator between words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", between, plain).strip(between)[:MAX_LENGTH].strip(between)
