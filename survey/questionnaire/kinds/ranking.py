"""Questions whose answer is an order of all options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations
from math import factorial
from typing import Any, Literal

import numpy as np

from survey.errors import ChannelError
from survey.mechanism import AnyChannel, WeightTable
from survey.mechanism.channel import Floats, Integers
from survey.mechanism.ranking import first_choice_channel, first_choice_counts
from survey.mechanism.weight_table import MAX_RANKED, MIN_RANKED
from survey.questionnaire.kinds.base import Answer, Kind, PublishedQuestion, Shares, SharesAndMeans
from survey.questionnaire.kinds.question import OptionsQuestion


class Ranking(Kind):
    """An order of all options, from the first place to the last.

    Shares are those of first places. Simulated respondents choose the first place by the shares of
    the options, then each further place by those of the options that remain (Plackett and Luce).
    """

    type = "ranking"
    label = "Answers in order of preference"
    icon = "M10 6h11M10 12h11M10 18h11M4 4v5M3 14h3l-3 4h3"
    is_ranking = True
    mechanisms = ("first_or_order",)
    mechanism = "first_or_order"
    fields = ("options", "shuffle_options")

    def count_truths(self, question: PublishedQuestion) -> int:
        return len(_indices(self.count_ranked(question))) + _opt_outs(question)

    def count_values(self, form: Mapping[str, Any]) -> int:
        options = form.get("options")
        ranked = len(options) if isinstance(options, list) else 0
        return factorial(ranked) if MIN_RANKED <= ranked <= MAX_RANKED else 0

    def describe(self, question: PublishedQuestion) -> str:
        return f"{self.count_ranked(question)} options in order"

    def count_ranked(self, question: PublishedQuestion) -> int:
        return len(question.options) - _opt_outs(question)

    def truth(self, question: PublishedQuestion, answer: Answer) -> Answer:
        """Return the index of a ranking in lexicographic order; the indices of opt-outs follow."""
        ranked = self.count_ranked(question)
        indices = _indices(ranked)
        if not isinstance(answer, int):
            return indices[tuple(answer)]
        if not ranked <= answer < len(question.options):
            raise KeyError(answer)
        return len(indices) + answer - ranked

    def share_channel(self, question: PublishedQuestion) -> AnyChannel:
        return first_choice_channel(_table(question))

    def share_counts(self, question: PublishedQuestion, counts: Integers) -> Integers:
        return first_choice_counts(counts, _table(question))

    def draw_answers(
        self, question: PublishedQuestion, shares: Shares, n: int, rng: np.random.Generator
    ) -> list[Answer]:
        """Draw places one by one; an option's chance is its share among those that remain.

        Sorting options by exponential times, each divided by the option's share, gives this
        distribution.
        """
        ranked = self.count_ranked(question)
        times = rng.exponential(size=(n, ranked)) / _first_places(question, shares)
        silent = [0.0, *shares[ranked:]]
        silent[0] = max(1 - sum(silent), 0.0)
        choices = rng.choice(len(silent), size=n, p=np.array(silent) / sum(silent))
        return [
            ranked + int(choice) - 1 if choice else tuple(order)
            for choice, order in zip(choices, np.argsort(times, axis=1).tolist(), strict=True)
        ]

    def true_shares(self, question: PublishedQuestion, shares: Shares) -> SharesAndMeans:
        """Return the shares, and the mean rank 1 + sum over j of w_j/(w_i + w_j) of option i.

        w_i is the share of first places of option i. In this model, option i is preferred to
        option j with the odds w_i : w_j, whatever the other options are (Luce 1959).
        """
        weights = _first_places(question, shares)
        if not sum(shares[: weights.size]):
            return list(shares), {}
        # The option itself adds 1/2.
        ranks = 0.5 + (weights / (weights[:, None] + weights)).sum(axis=1)
        names = (option.id for option in question.options)
        return list(shares), dict(zip(names, ranks.tolist(), strict=False))

    def option_answer(self, question: PublishedQuestion, option: int) -> Answer:
        """Return an opt-out, or a ranking with the option in the first place."""
        ranked = self.count_ranked(question)
        if option >= ranked:
            return option
        return (option, *(other for other in range(ranked) if other != option))


@lru_cache(maxsize=MAX_RANKED)
def _indices(ranked: int) -> dict[tuple[int, ...], int]:
    return {order: i for i, order in enumerate(permutations(range(ranked)))}


def _first_places(question: PublishedQuestion, shares: Shares) -> Floats:
    """Return the shares of first places, raised above 0 so that all options can be ordered."""
    ranked = question.kind.count_ranked(question)
    return np.array([max(share, 1e-9) for share in shares[:ranked]])


def _opt_outs(question: PublishedQuestion) -> int:
    return len({question.opt_out, question.not_applicable} - {""})


def _table(question: PublishedQuestion) -> WeightTable:
    if not isinstance(question.channel, WeightTable):
        raise ChannelError(f"{question.id}: a ranking needs a weight table")
    return question.channel


class RankingQuestion(OptionsQuestion):
    """An order of 3 to 6 options."""

    type: Literal["ranking"]

    def _check(self) -> None:
        if mistake := self._size_mistake(MIN_RANKED, MAX_RANKED + len(self.special)):
            raise mistake
