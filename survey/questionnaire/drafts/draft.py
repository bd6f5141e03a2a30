"""A survey that is being written: all that its researcher said so far, right or wrong.

Every text is a table of language = text, and pages, questions and options have numbers of their
own, so that what somebody edits is found again after others have moved it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from survey.catalogue import SOURCE
from survey.errors import NotFoundError
from survey.questionnaire.kinds import DEFAULT_KIND
from survey.questionnaire.texts import SURVEY_TEXTS

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
    "type": DEFAULT_KIND.type,
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


Shares = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Tried:
    """What was typed last, and what all simulated respondents of the try-out were drawn from.

    `typed` are the fields as they were sent, `shares` what they mean. `simulated` is whether the
    try-out that there is holds anybody drawn from them, `differed` whether others were drawn from
    other shares.
    """

    typed: Mapping[str, str]
    shares: Shares
    simulated: bool = False
    differed: bool = False

    def again(self, typed: Mapping[str, str], shares: Shares) -> Tried:
        """After one more simulation."""
        differs = self.simulated and (self.differed or self.form["shares"] != _listed(shares))
        return Tried(typed, _listed(shares), simulated=True, differed=differs)

    def anew(self) -> Tried:
        """The try-out was made anew, or is gone: what was typed stays, nobody was drawn from it."""
        return replace(self, simulated=False, differed=False)

    @property
    def form(self) -> dict[str, Any]:
        """For a store."""
        return {**self.__dict__, "typed": dict(self.typed), "shares": _listed(self.shares)}


NOTHING = Tried({}, {})


def _listed(shares: Shares) -> dict[str, list[float]]:
    return {name: list(each) for name, each in shares.items()}


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
        return str(self.survey["title"].get(self.own) or "Untitled survey")

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


LONGEST = 40
"""Characters of an id that is made of a text; what is written by hand may be longer."""


def identifier(text: str) -> str:
    """An id that a text can be known by; empty when it has no letter or digit of ASCII.

    >>> identifier("Más de una vez (2+)"), identifier("10 or more"), identifier("никогда")
    ('mas_de_una_vez_2', 'o10_or_more', '')
    """
    words = _words(text, "_")
    return f"o{words}" if words[:1].isdigit() else words


def slug(text: str) -> str:
    """An address that a title can be known by; "survey" when it has nothing of ASCII.

    >>> slug("Work & health, 2026"), slug("опрос")
    ('work-health-2026', 'survey')
    """
    return _words(text, "-") or "survey"


def free(wanted: str, taken: Collection[str]) -> str:
    """An id near the wanted one that nothing has yet.

    >>> free("q1", {"q1", "q2"}), free("often", {"often"}), free("a", ())
    ('q3', 'often_2', 'a')
    """
    if wanted not in taken:
        return wanted
    counted = re.fullmatch(r"(.*?)([0-9]+)", wanted)
    stem, start = (counted[1], int(counted[2])) if counted else (f"{wanted}_", 1)
    return next(
        name
        for n in range(start + 1, start + len(taken) + 2)
        if (name := f"{stem}{n}") not in taken
    )


def _words(text: str, between: str) -> str:
    """The letters and digits of a text in ASCII, with one mark between its words."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", between, plain).strip(between)[:LONGEST].strip(between)
