"""Groups whose answers can be compared: links, versions, and the people of a reported answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from survey.errors import NotFoundError
from survey.mechanism import BitVector, SubsetSelection
from survey.questionnaire.kinds import PublishedQuestion
from survey.results.crosstab.compute import answers
from survey.results.strata_counts import counts_by_link
from survey.store import PublishedSurvey, Store

LINK, VERSION, ANSWER = "link", "version", "answer"
"""How a group is known; the first two openly, the last through random answers alone."""


@dataclass(frozen=True)
class Group:
    """One group: `of` is the link's name, the version's number or an answer's question.

    `option` is the place of the answer among the truths of its question.
    """

    kind: str
    of: str
    label: str
    option: int = 0
    option_id: str = ""

    @property
    def id(self) -> str:
        """What links call it."""
        return f"{self.kind}:{self.of}" + (f":{self.option_id}" if self.kind == ANSWER else "")


def groups(store: Store, survey: PublishedSurvey) -> dict[str, Sequence[Group]]:
    """All groups there are, under their headings."""
    links = [Group(LINK, one.name, f"link {one.name}") for one in counts_by_link(store, survey)]
    versions = [
        Group(VERSION, str(one.version), f"version {one.version}")
        for one in store.versions(survey.slug)
    ]
    found: dict[str, Sequence[Group]] = {"Links": links, "Versions": versions}
    found = {heading: some for heading, some in found.items() if len(some) > 1}
    for question in survey.definition.questions:
        if splits(question):
            found[f"Answers to “{question.text}”"] = _answer_groups(question)
    return found


def group_named(store: Store, survey: PublishedSurvey, name: str) -> Group:
    """The group that a link names; NotFoundError when there is none."""
    for some in groups(store, survey).values():
        for group in some:
            if group.id == name:
                return group
    raise NotFoundError(f'{survey.slug} has no group "{name[:80]}"')


def splits(question: PublishedQuestion) -> bool:
    """Whether people can be told apart by this question: one answer of a list in each report."""
    channel = question.channel
    several = isinstance(channel, BitVector) or (
        isinstance(channel, SubsetSelection) and channel.d > 1
    )
    return question.type not in ("number", "date") and not several


def _answer_groups(question: PublishedQuestion) -> list[Group]:
    return [
        Group(ANSWER, question.id, label, place, option)
        for place, (option, label) in enumerate(answers(question))
    ]
