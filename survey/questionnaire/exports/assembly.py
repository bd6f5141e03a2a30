"""What all formats share: the result, and the parts of a survey in all of its languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from survey.questionnaire.definition import Page, Survey, written_questions
from survey.questionnaire.kinds import BaseQuestion

Localized = Mapping[str, str]
"""A text by language; the survey's own language comes first."""


@dataclass(frozen=True)
class Exported:
    """A file's content and ending; `notes` say what the format cannot express."""

    content: bytes
    ending: str
    notes: tuple[str, ...]
    media_type: str = "application/octet-stream"


@dataclass(frozen=True)
class TranslatedQuestion:
    """A question as written, in each language: itself, or the published rows of a matrix."""

    versions: Mapping[str, tuple[BaseQuestion, ...]]

    @property
    def rows(self) -> tuple[BaseQuestion, ...]:
        """The published questions in the survey's own language."""
        return next(iter(self.versions.values()))

    @property
    def first(self) -> BaseQuestion:
        """The first published question in the survey's own language."""
        return self.rows[0]

    @property
    def id(self) -> str:
        """The id of the question as written."""
        return self.first.matrix.id if self.first.matrix else self.first.id

    @property
    def is_matrix(self) -> bool:
        """Whether the question has rows."""
        return self.first.matrix is not None


def languages_of(survey: Survey) -> dict[str, Survey]:
    """Return the survey in each of its languages, its own first."""
    return {survey.language: survey, **survey.translations}


def translated_pages(
    survey: Survey,
) -> Iterator[tuple[Mapping[str, Page], list[TranslatedQuestion]]]:
    """Yield each page in all languages, with its questions."""
    languages = languages_of(survey)
    for i in range(len(survey.pages)):
        pages = {tag: version.pages[i] for tag, version in languages.items()}
        by_language = {tag: list(written_questions(page.questions)) for tag, page in pages.items()}
        n_questions = len(by_language[survey.language])
        questions = [
            TranslatedQuestion({tag: rows[j] for tag, rows in by_language.items()})
            for j in range(n_questions)
        ]
        yield pages, questions
