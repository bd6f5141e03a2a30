"""One question's figures of several groups beside each other: of links, times, or versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from survey.errors import NotFoundError
from survey.estimator import Disclosure
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.estimates.question import Part, QuestionResult
from survey.results.estimates.result import SurveyResult, asks, place_of
from survey.results.estimates.table import Row
from survey.results.grouped import Group, has_passed
from survey.results.wording import NEVER_ENOUGH, NOT_ENOUGH

PARTS: Mapping[str, str] = {
    "shares": "Shares among all",
    "answered": "Shares of those who answered",
    "mean": "Mean",
    "median": "Median",
    "spread": "Histogram",
}
"""What of a question can be compared, and what it is called on pages."""

ALL_LINKS = "all links"

Over = Literal["links", "time", "versions"]


@dataclass(frozen=True)
class ComparedGroup:
    """One group's figures: its name, and the part of its question that is compared.

    `of` has the texts and the randomization of the version it was asked in. Of a group that has
    `ended` no more reports are to come.
    """

    name: str
    of: QuestionResult
    part: Part
    bucket: str
    ended: bool

    @property
    def rows(self) -> tuple[Row, ...]:
        """Its rows, with numbers or without."""
        return self.part.rows

    @property
    def shown(self) -> Disclosure:
        """Whether its numbers may be shown."""
        return self.part.disclosure

    @property
    def said(self) -> str:
        """What stands instead of its numbers while they are hidden."""
        return self.part.caveat(closed=self.ended) or (NEVER_ENOUGH if self.ended else NOT_ENOUGH)


@dataclass(frozen=True)
class Compared:
    """A part of one question in several groups, each of which is shown or hidden for itself.

    `over` is what tells the groups apart: links, time or versions.
    """

    over: Over
    question: PublishedQuestion
    part: str
    groups: tuple[ComparedGroup, ...]

    @property
    def rows(self) -> list[Row]:
        """Every row of every group: those of page and CSV."""
        return [row for group in self.groups for row in group.rows]

    @property
    def columns(self) -> tuple[Row, ...]:
        """The rows of one group, whose labels are those of all."""
        return self.groups[0].rows if self.groups else ()


def parts_of(found: QuestionResult) -> list[str]:
    """What can be compared of a question, the usual first."""
    there = [name for name in PARTS if part_of(found, name).rows]
    if found.question.type in ("number", "date"):
        there.sort(key=lambda name: name == "shares")
    return there


def part_of(found: QuestionResult, name: str) -> Part:
    """One of the parts of `PARTS`; NotFoundError for another name."""
    if name not in PARTS:
        raise NotFoundError(f"there is no {name}; there are {', '.join(PARTS)}")
    part: Part = getattr(found, f"{name}_part")
    return part


def compared(
    over: Over,
    results: Sequence[tuple[str, SurveyResult]],
    question: str,
    part: str,
    today: date | None = None,
) -> Compared:
    """Put a question's figures of several named results beside each other, in their order.

    `today` says which times have passed; unless given, the day the results were made.

    A part that the question does not have is its usual one: another question was chosen.
    """
    found = [(name, result, result.question(question)) for name, result in results]
    usual = parts_of(found[0][2])
    chosen = part if part in usual else usual[0]
    return Compared(
        over,
        found[0][2].question,
        chosen,
        tuple(
            ComparedGroup(
                name,
                one,
                part_of(one, chosen),
                result.group.bucket,
                ended=result.survey.state != "open"
                or (over == "time" and has_passed(result.group.bucket, today or result.now.date())),
            )
            for name, result, one in found
        ),
    )


def over_links(
    every: SurveyResult, groups: Mapping[Group, SurveyResult]
) -> list[tuple[str, SurveyResult]]:
    """All reports, and those of each link; nothing where there is only the open link."""
    named = [(group.stratum, result) for group, result in groups.items()]
    return [(ALL_LINKS, every), *named] if named else []


def over_time(groups: Mapping[Group, SurveyResult]) -> list[tuple[str, SurveyResult]]:
    """The reports of each time of release."""
    return [(group.bucket, result) for group, result in groups.items()]


def same_question(one: PublishedQuestion, other: PublishedQuestion) -> bool:
    """Whether two versions ask for the same answers: their figures can stand in one chart."""

    def asked(question: PublishedQuestion) -> tuple[object, ...]:
        options = tuple(option.id for option in question.options)
        silent = question.opt_out, question.not_applicable
        return question.type, options, silent, question.grid, question.max_ticks

    return asked(one) == asked(other)


def over_versions(
    results: Sequence[SurveyResult], question: str
) -> tuple[list[tuple[str, SurveyResult]], list[str]]:
    """The versions that ask the same, from the first to the newest, and what to say of them.

    `results` are those of versions, the one that is looked at first. Others are left out by name.
    """
    looked_at = _asked(results[0], question)
    kept: list[SurveyResult] = []
    said: list[str] = []
    for result in sorted(results, key=lambda each: each.survey.version):
        version = result.survey.version
        if not asks(result.survey, question):
            said.append(f"Version {version} does not ask this question.")
        elif not same_question(_asked(result, question), looked_at):
            said.append(f"Version {version} asks it with other answers, and is not shown here.")
        else:
            said += _changes(kept[-1], result, question) if kept else []
            kept.append(result)
    return [(f"version {result.survey.version}", result) for result in kept], said


def _asked(result: SurveyResult, name: str) -> PublishedQuestion:
    return result.survey.definition.questions[place_of(result.survey, name)]


def _changes(before: SurveyResult, after: SurveyResult, name: str) -> list[str]:
    """What changed in a question from one version to the next."""
    old, new = _asked(before, name), _asked(after, name)
    version, said = after.survey.version, []
    if old.channel.to_json() != new.channel.to_json():
        said.append(
            f"Version {version} randomizes differently (epsilon {new.channel.epsilon:.3g} instead "
            f"of {old.channel.epsilon:.3g}): estimates can be compared, shares of reports cannot, "
            "and people may answer differently."
        )
    if old.text != new.text:
        said.append(f"Version {version} asks in other words: “{new.text}” instead of “{old.text}”.")
    labels = [[option.label for option in each.options] for each in (old, new)]
    if labels[0] != labels[1]:
        said.append(f"Version {version} words its answers differently.")
    return said
