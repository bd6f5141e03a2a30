"""The preview of a draft: the definition that publishing would create, or that of one question."""

from __future__ import annotations

from dataclasses import dataclass, replace

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Survey
from survey.questionnaire.drafts.draft import DraftContent


@dataclass(frozen=True)
class Preview:
    """The data with which the respondents' page shows a draft.

    definition  the canonical JSON of the definition
    sha256      its hash
    language    the tag of the language to start in, "" for that of the browser
    script      the address of the script that keeps the page from storing or sending anything
    starts      whether the page skips its start page
    """

    definition: str
    sha256: str
    language: str
    script: str
    starts: bool

    @classmethod
    def of(cls, survey: Survey, language: str, script: str, *, starts: bool) -> Preview:
        """Return the preview of a checked draft; raises DefinitionError for an oversized report."""
        definition = freeze(survey, 1)
        return cls(
            definition.canonical.decode("utf-8"), definition.sha256, language, script, starts
        )


def only_question(content: DraftContent, key: int) -> DraftContent:
    """Return the draft with one question, which everyone is asked; raises NotFoundError."""
    question = {**content.question(key), "ask_question": "", "ask_options": ()}
    page = next(page for page in content.pages if content.question(key) in page.questions)
    survey = {**content.survey, "questions_per_person": "", "together": ()}
    return replace(content, survey=survey, pages=(replace(page, questions=(question,)),))
