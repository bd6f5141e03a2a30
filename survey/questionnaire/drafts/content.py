"""A survey that is being written: all that its researcher said so far, right or wrong.

Every text is a table of language = text, and pages, questions and options have numbers of their
own, so that what somebody edits is found again after others have moved it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from survey.catalogue import SOURCE
from survey.errors import NotFoundError
from survey.questionnaire.drafts.tried import NOTHING, Tried
from survey.questionnaire.languages import SURVEY_TEXTS

Texts = Mapping[str, str]
"""One text in several languages."""

Question = Mapping[str, Any]
"""A question as it is edited; `EMPTY_QUESTION` has its keys."""

TEXTS_OF_A_QUESTION = (
    "text",
    "help",
    "unit",
    "low_label",
    "high_label",
    "none_of_these_label",
    "does_not_apply_label",
    "prefer_not_to_say_label",
)

EMPTY_QUESTION: Question = {
    "id": "",
    "type": "yes_no",
    **{name: {} for name in TEXTS_OF_A_QUESTION},
    "options": (),
    **dict.fromkeys(("low", "high", "step", "max_ticks"), ""),
    "shuffle_options": False,
    "prefer_not_to_say": True,
    "does_not_apply": False,
    "ask_question": "",
    "ask_options": (),
    "mechanism": "",
    "parameters": "",
    "way": "",
    "value": "",
}

EMPTY_SURVEY: Mapping[str, Any] = {
    "slug": "",
    "language": SOURCE,
    **{name: {} for name in SURVEY_TEXTS},
    "allow_skip_logic": False,
    "questions_per_person": "",
    "bucket": "none",
    "access": "open",
    "kiosk": False,
    "theme": "",
    "quick_exit": "",
}

EMPTY_PLAN: Mapping[str, str] = dict.fromkeys(
    ("n", "margin", "opens", "closes", "most", "strata"), ""
)


@dataclass(frozen=True)
class DraftPage:
    """Questions shown together."""

    key: int
    title: Texts
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class DraftContent:
    """All of a draft; `languages` are those beside its own, `used` the last number given.

    `tried` is what was typed to try it, no part of what is published.
    """

    survey: Mapping[str, Any]
    languages: tuple[str, ...]
    pages: tuple[DraftPage, ...]
    plan: Mapping[str, str]
    used: int
    tried: Tried = NOTHING

    @classmethod
    def new(cls, title: str, slug: str) -> DraftContent:
        """A survey of one page without questions."""
        survey = {**EMPTY_SURVEY, "title": {SOURCE: title}, "slug": slug}
        return cls(survey, (), (DraftPage(1, {}, ()),), EMPTY_PLAN, 1)

    @property
    def own(self) -> str:
        """The language that the survey is written in."""
        return str(self.survey["language"])

    @property
    def title(self) -> str:
        """What lists call it."""
        return str(self.survey["title"].get(self.own) or "A survey without a title")

    @property
    def questions(self) -> Iterator[Question]:
        """All questions in their order."""
        return (question for page in self.pages for question in page.questions)

    def question(self, key: int) -> Question:
        """The question of a number; NotFoundError when it was removed."""
        for question in self.questions:
            if question["key"] == key:
                return question
        raise NotFoundError("this question was removed from the draft")

    def page(self, key: int) -> DraftPage:
        """The page of a number; NotFoundError when it was removed."""
        for page in self.pages:
            if page.key == key:
                return page
        raise NotFoundError("this page was removed from the draft")

    def with_question(self, key: int, question: Question) -> DraftContent:
        """The same with another question in the place of one; of a removed one, at the end."""
        if all(one["key"] != key for one in self.questions):
            last = self.pages[-1]
            return self.with_page(replace(last, questions=(*last.questions, question)))

        def changed(page: DraftPage) -> DraftPage:
            questions = tuple(question if q["key"] == key else q for q in page.questions)
            return replace(page, questions=questions)

        return self.each_page(changed)

    def with_page(self, page: DraftPage) -> DraftContent:
        """The same with a page in the place of the one of its number."""
        return self.each_page(lambda one: page if one.key == page.key else one)

    def each_page(self, change: Callable[[DraftPage], DraftPage]) -> DraftContent:
        """The same with every page changed."""
        return replace(self, pages=tuple(map(change, self.pages)))

    def each_text(self, change: Callable[[Texts], Texts]) -> DraftContent:
        """The same with every text changed, wherever it stands."""

        def question(one: Question) -> Question:
            texts = {name: change(one[name]) for name in TEXTS_OF_A_QUESTION}
            options = tuple({**each, "label": change(each["label"])} for each in one["options"])
            return {**one, **texts, "options": options}

        return replace(
            self,
            survey={**self.survey, **{name: change(self.survey[name]) for name in SURVEY_TEXTS}},
            pages=tuple(
                DraftPage(page.key, change(page.title), tuple(map(question, page.questions)))
                for page in self.pages
            ),
        )

    def to_json(self) -> str:
        """What a store keeps."""
        form = {
            "survey": self.survey,
            "languages": self.languages,
            "pages": [page.__dict__ for page in self.pages],
            "plan": self.plan,
            "used": self.used,
            "tried": self.tried.form,
        }
        return json.dumps(form, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> DraftContent:
        """Read back what `to_json` wrote."""
        form = json.loads(text)
        return cls(
            survey={**EMPTY_SURVEY, **form["survey"]},
            languages=tuple(form["languages"]),
            pages=tuple(_page(page) for page in form["pages"]),
            plan={**EMPTY_PLAN, **form["plan"]},
            used=form["used"],
            tried=Tried(**form["tried"]) if "tried" in form else NOTHING,
        )


def _page(form: Mapping[str, Any]) -> DraftPage:
    questions = tuple(
        {
            **EMPTY_QUESTION,
            **question,
            "options": tuple(question.get("options", ())),
            "ask_options": tuple(question.get("ask_options", ())),
        }
        for question in form["questions"]
    )
    return DraftPage(form["key"], form["title"], questions)
