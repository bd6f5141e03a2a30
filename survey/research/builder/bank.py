"""Survey templates, and the question bank with the questions of templates, surveys and drafts.

The bank stores nothing. It reads the templates, and the surveys and drafts that the researcher may
see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from flask import render_template, request

from survey.errors import NotFoundError
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent, Question
from survey.questionnaire.loading import parse, source_of
from survey.research.access import Route, Workspace
from survey.research.builder.draft_editor import DraftPages, readable_contents
from survey.research.builder.forms import TYPE_NAMES, DoForm
from survey.research.forms import whole_number
from survey.store import draft_key

TEMPLATES: Mapping[str, str] = {
    "workplace_harassment": "Workplace harassment",
    "substance_use": "Substance use",
    "health_behaviour": "Health behaviour",
    "election": "Elections",
    "student_integrity": "Student integrity",
    "employees": "Employee survey",
}
"""The templates' files and names."""

PLANNED_RESPONSES = 2_000
"""The number of responses that the designs of the templates assume."""

MAX_LISTED = 40
"""Maximum number of questions on a page of the bank; a search finds the others."""


@cache
def template(name: str) -> DraftContent:
    """Return a template as the content of a draft; raises NotFoundError if there is none."""
    if name not in TEMPLATES:
        raise NotFoundError("there is no such template")
    file = Path(__file__).parent / "templates" / f"{name}.toml"
    content = draft_from(parse(file.read_bytes(), file.name))
    return replace(content, plan={**content.plan, "n": str(PLANNED_RESPONSES)})


@dataclass(frozen=True)
class BankQuestion:
    """A question of the bank; `source` identifies it, `origin` is the title of its survey."""

    source: str
    text: str
    type: str
    origin: str


def routes(workspace: Workspace) -> list[Route]:
    """Declare the page of the question bank."""
    return [Route("GET", "/<slug>/bank", "editor", BankPages(workspace).bank)]


class BankPages(DraftPages):
    """The question bank of the signed-in researcher."""

    def bank(self, slug: str) -> str:
        """List the questions that match a search."""
        opened = self._drafts.open(slug)
        words = request.args.get("find", "").casefold().split()
        matches = (
            question
            for question in self._questions(slug)
            if all(word in f"{question.text}\n{question.origin}".casefold() for word in words)
        )
        listed = list(islice(matches, MAX_LISTED + 1))
        pages = [page.key for page in opened.content.pages]
        key = whole_number(request.args.get("page", ""))
        return render_template(
            "research/builder/bank.html",
            survey=opened.draft,
            content=opened.content,
            form=DoForm(formdata=None),
            page=key if key in pages else pages[-1],
            find=request.args.get("find", ""),
            questions=listed[:MAX_LISTED],
            has_more=len(listed) > MAX_LISTED,
        )

    def question(self, source: str) -> tuple[Question, str]:
        """Return a question of the bank and the language of its survey.

        Raises NotFoundError if the question does not exist or the researcher may not see it.
        """
        kind, _, rest = source.partition(":")
        name, _, question_id = rest.rpartition(":")
        content = self._content(kind, name)
        for question in content.questions:
            if _question_name(question, kind) == question_id:
                return question, content.own_language
        raise NotFoundError("this question was removed")

    def _content(self, kind: str, name: str) -> DraftContent:
        if kind == "template":
            return template(name)
        if self._gate.role(name) is not None:
            if kind == "draft" and draft_key(name):
                return self._drafts.open(name).content
            versions = self._store.versions(name) if kind == "survey" else []
            if versions and not versions[0].is_test_run:
                return draft_from(source_of(versions[0].definition))
        raise NotFoundError("this survey does not exist, or you may not see it")

    def _questions(self, slug: str) -> Iterator[BankQuestion]:
        """Yield the questions of other drafts, then of surveys, then of templates."""
        visible = self._gate.roles()
        for draft, content in readable_contents(self._store.drafts()):
            if draft.slug in visible and draft.slug != slug:
                yield from _bank_questions(content, "draft", draft.slug, content.title)
        newest: set[str] = set()
        for survey in sorted(self._store.surveys(), key=lambda survey: -survey.version):
            if survey.slug not in visible or survey.is_test_run or survey.slug in newest:
                continue
            newest.add(survey.slug)
            for question in survey.definition.questions:
                source = f"survey:{survey.slug}:{question.id}"
                title = survey.definition.title
                yield BankQuestion(source, question.text, question.kind.label, title)
        for name, title in TEMPLATES.items():
            yield from _bank_questions(template(name), "template", name, f"Template: {title}")


def _bank_questions(
    content: DraftContent, kind: str, name: str, origin: str
) -> Iterator[BankQuestion]:
    for question in content.questions:
        text = question["text"].get(content.own_language)
        if text:
            source = f"{kind}:{name}:{_question_name(question, kind)}"
            yield BankQuestion(source, text, TYPE_NAMES[question["type"]], origin)


def _question_name(question: Question, kind: str) -> Any:
    """Return the key of a draft's question, or the id of any other question."""
    return str(question["key"] if kind == "draft" else question["id"])
