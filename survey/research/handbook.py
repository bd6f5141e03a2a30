"""The handbook's pages: open to everybody, and linked from the pages that they explain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flask import Response, render_template, request

from survey import handbook
from survey.errors import NotFoundError
from survey.estimator.planning.expected_margin import PLANNED_NO_ANSWER
from survey.questionnaire.definition import Definition
from survey.questionnaire.privacy_loss import Bounds, becomes
from survey.research.access import Pages, Route, Section, Workspace
from survey.results.plan.compute import planned_margin, plans_mean
from survey.results.plan.sentences import Responses
from survey.settings import Settings

HELP: Mapping[str, tuple[str, ...]] = {
    "research": ("tutorial/first-survey",),
    "research.publish": ("reference/definition",),
    "drafts": ("how-to/sensitive-questions", "how-to/epsilon-and-sample-size"),
    "drafts.new": ("tutorial/first-survey", "how-to/other-survey-tools"),
    "drafts.from_file": ("how-to/other-survey-tools", "how-to/xlsform"),
    "drafts.design": ("how-to/epsilon-and-sample-size",),
    "drafts.plan": ("how-to/epsilon-and-sample-size",),
    "drafts.languages": ("how-to/languages",),
    "drafts.translation": ("how-to/languages",),
    "drafts.publish": ("how-to/ethics", "how-to/data-protection"),
    "collection": ("how-to/invitations", "how-to/shared-devices"),
    "share": ("how-to/publish-results", "how-to/messages", "how-to/invitations"),
    "readers": ("explanation/randomized-answers",),
    "results": ("how-to/read-results", "explanation/randomized-answers"),
    "questionnaires": ("how-to/other-survey-tools", "how-to/xlsform"),
    "microdata": ("how-to/spss-stata-r", "how-to/replication", "reference/files"),
    "reports": ("how-to/read-results",),
    "tokens": ("reference/api",),
    "team": ("reference/workspace",),
    "account": ("how-to/accounts",),
    "people": ("how-to/accounts", "reference/workspace"),
}
"""Names of the pages that explain an endpoint; without an entry, those of its blueprint."""


def sections(workspace: Workspace) -> list[Section]:
    """Declare the handbook, with the function by which other pages link to it."""
    views = _HandbookPages(workspace)
    routes = [
        Route("GET", "", "anybody", views.contents),
        Route("GET", "/<path:name>", "anybody", views.page),
    ]
    section = Section("handbook", handbook.ADDRESS, routes)
    section.app_context_processor(lambda: {"help_pages": help_pages})
    return [section]


def help_pages(endpoint: str) -> list[handbook.Page]:
    """Return the handbook's pages that explain an endpoint."""
    names = HELP.get(endpoint) or HELP.get(endpoint.partition(".")[0], ())
    return [handbook.page(name) for name in names]


APPLICATIONS: Mapping[str, str] = {
    "ethics": "how-to/ethics",
    "data-protection": "how-to/data-protection",
}
"""Pages with texts that a survey's own figures complete, by their name in an address."""


def application_page(
    name: str, definition: Definition, n: int, settings: Settings, **variables: Any
) -> str:
    """Show the texts for an application with the figures of a survey and n expected responses.

    Raises NotFoundError if there are no texts of this name.
    """
    if name not in APPLICATIONS:
        raise NotFoundError(f"there are no texts {name}: choose {' or '.join(APPLICATIONS)}")
    page = handbook.page(APPLICATIONS[name])
    declinable = all(question.opt_out for question in definition.questions)
    conditions = {
        "EVERY QUESTION CAN BE DECLINED": declinable,
        "SOME QUESTIONS CANNOT BE DECLINED": not declinable,
        "YOU USE INVITATIONS": definition.access == "invitation",
        "THE LINK IS OPEN": definition.access == "open",
        "YOU STORE DATES": definition.bucket != "none",
        "EACH PERSON IS ASKED ONLY SOME QUESTIONS": definition.is_sampled,
    }
    html = handbook.fill_in(page.name, application_values(definition, n, settings), conditions)
    return render_template(
        "research/application.html", page=page, html=html, names=APPLICATIONS, **variables
    )


def application_values(definition: Definition, n: int, settings: Settings) -> dict[str, str]:
    """Return the figures of a survey by the words in capitals that they replace.

    The margins are those of a share near 50%, of the question with the widest one.
    """
    bounds = Bounds.of(definition.ratio)
    values = {
        "TITLE OF THE SURVEY": definition.title,
        "FACTOR": bounds.odds,
        "BECOMES AT MOST THIS PERCENTAGE": becomes(bounds.from10),
        "SHA-256": definition.sha256,
        "PERIOD": f"{settings.release_every / 60:g} minutes",
        "NUMBER OF QUESTIONS": str(len(definition.groups)),
        "QUESTIONS PER PERSON": str(definition.drawn),
    }
    if settings.retention_days:
        values["RETENTION"] = f"{settings.retention_days} days"
    share_asked = Fraction(definition.drawn, len(definition.groups))
    to_question = Responses(n, share_asked).to_question
    shares = [question for question in definition.questions if not plans_mean(question)]
    if shares:
        margins = {question.id: planned_margin(question, to_question) for question in shares}
        widest = max(shares, key=lambda question: margins[question.id])
        # Wald: z sqrt(0.5 * 0.5 / n), with z = 1.96 for 95%, among the people who answer.
        n_answers = to_question * (1 - PLANNED_NO_ANSWER * bool(widest.opt_out))
        plain = 1.96 * math.sqrt(0.25 / n_answers)
        values |= {
            "NUMBER OF RESPONSES": f"{n:,}",
            "MARGIN": f"{100 * margins[widest.id]:.1f}",
            "PLAIN MARGIN": f"{100 * plain:.1f}",
        }
    return values


class _HandbookPages(Pages):
    def contents(self) -> str:
        """Show the table of contents, or what a search finds."""
        query = request.args.get("q", "").strip()[: handbook.MAX_QUERY]
        return render_template(
            "research/handbook.html",
            parts=handbook.parts(),
            query=query,
            matches=handbook.search(query),
        )

    def page(self, name: str) -> Any:
        """Show a page beside the table of contents, or return a file that pages show or offer."""
        if file := handbook.attachments().get(name):
            media_type = handbook.MEDIA_TYPES[file.suffix]
            return Response(file.read_bytes(), content_type=media_type)
        return render_template(
            "research/handbook_page.html", page=handbook.page(name), parts=handbook.parts()
        )
