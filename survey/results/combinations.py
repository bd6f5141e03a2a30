"""Combinations of a question with another one, or with the groups, and what each still needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from survey.errors import ChannelError, CountsError, NotFoundError
from survey.estimator.core.arguments import CodeChannel
from survey.estimator.trust.suppression import HIDDEN_MARGIN
from survey.estimator.trust.worst_case import crosstab_worst_case
from survey.results.crosstab.compute import crosstab_channels
from survey.results.difference.compute import comparable_groups, missing_in_group
from survey.results.display_status import count_missing
from survey.results.groups import Group, tallies_by_link
from survey.results.joint_counts import ask_probability, list_variables
from survey.results.question_statistics import find_question
from survey.store import PublishedSurvey, Store

GROUP_HEADINGS = {"groups": "Groups", "versions": "Versions"}
"""What a question can be shown by, beside other questions: the name in links, and on pages."""

CACHED_PAIRS = 4_096

MAX_PAIRS = 200
"""Maximum number of listed pairs; the 19,900 pairs of 200 questions would take minutes."""


class Combination(NamedTuple):
    """A question by another one, or by `GROUP_HEADINGS`.

    `missing` is about how many more responses it needs: 0 if it can be shown now.
    """

    question: str
    text: str
    by: str
    by_text: str
    missing: int


def list_combinations(
    store: Store, survey: PublishedSurvey, question: str = ""
) -> list[Combination]:
    """Return the combinations that the design allows, those needing the fewest responses first.

    If there are many questions, consider only `MAX_PAIRS` pairs, those with `question` first.
    """
    found = [*_by_groups(store, survey), *_by_questions(store, survey, question)]
    return sorted(found, key=lambda combination: combination.missing)


def _by_groups(store: Store, survey: PublishedSurvey) -> Iterator[Combination]:
    """Yield each question by the two largest groups."""
    tallies = list(tallies_by_link(store, survey).values())[:2]
    if len(tallies) < 2:
        return
    for place, question in enumerate(survey.definition.questions):
        missing = [
            number
            for tally in tallies
            for number in missing_in_group(survey, question, tally.n_asked[place])
        ]
        if 0 not in missing:
            yield Combination(question.id, question.text, "groups", "groups", sum(missing))


def _by_questions(store: Store, survey: PublishedSurvey, question: str) -> Iterator[Combination]:
    """Yield the pairs of variables whose reports can be cross-tabulated."""
    n = store.tally(survey.key).n
    pairs = [
        pair for pair in combinations(list_variables(survey), 2) if pair[0].place != pair[1].place
    ]
    ids = [question_.id for question_ in survey.definition.questions]
    pairs.sort(key=lambda pair: question not in [ids[variable.place] for variable in pair])
    for first, second in pairs[:MAX_PAIRS]:
        questions = first.question, second.question
        try:
            needed = _needed(tuple(crosstab_channels(questions)))
        except (ChannelError, CountsError):
            continue
        asked = ask_probability(survey, [question.id for question in questions])
        is_shown = n * asked >= needed
        missing = 0 if is_shown else count_missing(needed, n * asked, asked)
        if is_shown or missing:
            texts = [question.text for question in questions]
            yield Combination(questions[0].id, texts[0], questions[1].id, texts[1], missing)


@lru_cache(maxsize=CACHED_PAIRS)
def _needed(channels: tuple[CodeChannel, ...]) -> int:
    """Return the number of reports from which a table is shown; ChannelError if it never is."""
    return crosstab_worst_case(channels).required_n(HIDDEN_MARGIN)


def groups_to_compare(
    store: Store, survey: PublishedSurvey, question_id: str, by: str
) -> Sequence[Group]:
    """Return the groups or versions, at least two, between which a question can be compared.

    Raises NotFoundError for an unknown question, or one that cannot be compared between them.
    """
    groups = comparable_groups(store, survey, find_question(survey, question_id))
    if GROUP_HEADINGS[by] not in groups:
        raise NotFoundError(f"{question_id} cannot be compared between {by}")
    return groups[GROUP_HEADINGS[by]]
