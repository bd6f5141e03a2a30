"""The demo's simulated respondents: fictitious answers with known associations.

Night-shift respondents are injured, bullied and on overtime more often. Bullied respondents
have less support, are less satisfied, and look for another job far more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from survey.mechanism import AnyChannel
from survey.mechanism.channel import Booleans, Codes, Floats, Integers
from survey.questionnaire.definition import Definition

DAY, NIGHT = "Day shift", "Night shift"
SHIFTS = DAY, NIGHT
"""The groups of respondents."""

NIGHT_SHARE = 0.4
"""Share of respondents who work at night."""

YES, NO, SILENT = 0, 1, 2
"""Positions of the options of a yes/no question with "Prefer not to say"."""

SICK = {False: (0.42, 0.26, 0.22, 0.10), True: (0.28, 0.24, 0.38, 0.10)}
"""Shares of each frequency of working while ill, and of no answer, by night shift."""

MOST_HOURS = 12
"""Last point of the grid of hours; the next position is "Prefer not to say"."""


@dataclass(frozen=True)
class Population:
    """True answers of n respondents.

    shifts   (n,): the position of each respondent's shift in `SHIFTS`
    answers  by question, (n,): the position of the option or grid point; of a multiple choice,
             (n, options): 1 for each ticked option
    """

    shifts: Integers
    answers: Mapping[str, Integers]

    def reports(self, definition: Definition, rng: np.random.Generator) -> Codes:
        """Randomize the answers to the questions drawn for each respondent.

        Returns the codes as a store keeps them, shape (n, bytes of a report).
        """
        n, n_groups = len(self.shifts), len(definition.groups)
        order = np.argsort(rng.random((n, n_groups)), axis=1)
        drawn = (order < definition.drawn).astype(np.uint8)
        group_of = {id_: place for place, group in enumerate(definition.groups) for id_ in group}
        codes = self._codes(definition, rng)
        columns: list[Codes] = []
        for question in definition.questions:
            # A stored code begins with 1 if its question was asked, and is 0 otherwise.
            is_drawn = drawn[:, group_of[question.id], None]
            columns += [is_drawn, codes[question.id] * is_drawn]
        return np.concatenate(columns, axis=1)

    def _codes(self, definition: Definition, rng: np.random.Generator) -> dict[str, Codes]:
        """Randomize all answers, by question; a joint response at its first question."""
        by_id = {question.id: question for question in definition.questions}
        codes: dict[str, Codes] = {}
        for question in definition.questions:
            joint = question.joint
            if joint is None:
                codes[question.id] = _stored(question.channel, self.answers[question.id], rng)
            elif question.id == joint.questions[0]:
                sizes = [by_id[id_].channel.options for id_ in joint.questions]
                truths = np.ravel_multi_index([self.answers[id_] for id_ in joint.questions], sizes)
                options = np.unravel_index(joint.channel.perturb(truths, rng), sizes)
                for id_, column in zip(joint.questions, options, strict=True):
                    codes[id_] = column.astype(np.uint8)[:, None]
        return codes


def _stored(channel: AnyChannel, truths: Integers, rng: np.random.Generator) -> Codes:
    reports = channel.perturb(truths, rng).astype(np.uint8)
    return np.packbits(reports, axis=1) if channel.report_bits else reports[:, None]


def simulate(n: int, rng: np.random.Generator) -> Population:
    """Draw the shifts and true answers of n respondents."""
    night = rng.random(n) < NIGHT_SHARE
    bullied = rng.random(n) < np.where(night, 0.38, 0.24)
    injured = rng.random(n) < np.where(night, 0.34, 0.16)
    harassed = rng.random(n) < np.where(bullied, 0.30, 0.12)
    ill = np.where(night, _draw(SICK[True], n, rng), _draw(SICK[False], n, rng))
    hours = np.minimum(np.rint(rng.gamma(1.8, np.where(night, 3.8, 2.6))), MOST_HOURS)
    mood = 4.5 - 1.3 * bullied - 0.6 * night - 0.1 * hours + rng.normal(0, 1.3, n)
    satisfaction = np.clip(np.rint(mood), 0, 6)
    log_odds = -0.95 + 1.2 * bullied + 0.4 * night - 0.25 * (satisfaction - 3.5)
    leaving = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return Population(
        night.astype(np.int64),
        {
            "injured": _or_silent(_yes_no(injured), SILENT, 0.10, rng),
            "sick_at_work": ill,
            "bullied": _yes_no(bullied),
            "harassed": _or_silent(_yes_no(harassed), SILENT, 0.12, rng),
            "support": _support(bullied, rng),
            "unpaid_overtime": _or_silent(hours, MOST_HOURS + 1, 0.06, rng),
            "satisfaction": satisfaction.astype(np.int64),
            "leaving": _yes_no(leaving),
        },
    )


def _draw(shares: tuple[float, ...], n: int, rng: np.random.Generator) -> Integers:
    return rng.choice(len(shares), size=n, p=shares)


def _yes_no(is_yes: Booleans) -> Integers:
    return np.where(is_yes, YES, NO)


def _or_silent(
    answers: Integers | Floats, silent: int, share: float, rng: np.random.Generator
) -> Integers:
    """Replace a share of the answers by "Prefer not to say"."""
    return np.where(rng.random(len(answers)) < share, silent, answers).astype(np.int64)


def _support(bullied: Booleans, rng: np.random.Generator) -> Integers:
    """Draw who supports each respondent; bullied ones have less support."""
    shares = np.where(bullied[:, None], (0.36, 0.16, 0.22, 0.14), (0.56, 0.40, 0.20, 0.14))
    is_silent = rng.random((len(bullied), 1)) < 0.06
    ticks = (rng.random(shares.shape) < shares) & ~is_silent
    nobody = ~ticks.any(axis=1, keepdims=True) & ~is_silent
    return np.concatenate([ticks, nobody, is_silent], axis=1).astype(np.int64)
