"""Whole reports of the real generator, question by question: each code as often as promised."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from survey.audit.check import Check
from survey.audit.empirical import ALPHA, bits_counted, clopper_pearson, promised, wrong_cell
from survey.audit.exact import work
from survey.audit.node import Node
from survey.audit.truths import Answer, Form, questions, random_answer, truths
from survey.mechanism import AnyChannel, channel_from_json

NAME = "whole reports of the real generator"

PEOPLE = 4
"""Sets of answers that are reported again and again."""

WORK = 60_000_000
"""Units of `work` for all reports together: fewer than asked for where one report takes long."""

REPORT = 150
"""What a report costs beside its perturbations."""

SEED = 20261123


def sampled_reports(node: Node, form: Form, n: int) -> Check:
    """n reports of each of a few sets of answers, the questions drawn anew for each report."""
    channels = {each["id"]: channel_from_json(each["channel"]) for each in questions(form)}
    n = min(n, max(WORK // (PEOPLE * _work(channels)), 100))
    rng = random.Random(SEED)  # noqa: S311  invented people, the same in every audit
    everyone = [_answers(form, rng) for _ in range(PEOPLE)]
    bits = [bits_counted(channel) for channel in channels.values()]
    asked = [{"answers": answers, "n": n, "bits": bits} for answers in everyone]
    seen = node.ask(sampleReports=asked)["sampleReports"]
    for answers, tally in zip(everyone, seen, strict=True):
        if wrong := _wrong(form, channels, answers, tally, n):
            return Check("generator", NAME, False, wrong)
    detail = f"{n:,} of each of {PEOPLE} sets of answers: {len(channels)} questions as promised"
    return Check("generator", NAME, True, detail)


def _work(channels: Mapping[str, AnyChannel]) -> int:
    return REPORT + sum(work(channel) for channel in channels.values())


def _answers(form: Form, rng: random.Random) -> dict[str, Answer]:
    given = {question["id"]: random_answer(question, rng) for question in questions(form)}
    return {name: answer for name, answer in given.items() if answer is not None}


def _wrong(
    form: Form,
    channels: Mapping[str, AnyChannel],
    answers: Mapping[str, Answer],
    tally: Mapping[str, Any],
    n: int,
) -> str:
    """What is not as promised, "" when all is."""
    if tally["ids"] != n:
        return f"{n:,} reports have {tally['ids']:,} ids"
    # A question and the one it depends on are drawn together: what is not drawn changes no truth.
    found = truths(form, answers, None)
    shares = _shares_asked(form)
    expected = {name: promised(channel, found[name]) for name, channel in channels.items()}
    alpha = ALPHA / 2 / PEOPLE / sum(len(cells) + 1 for cells in expected.values())
    for (name, cells), asked, counts in zip(
        expected.items(), tally["asked"], tally["counts"], strict=True
    ):
        low, high = clopper_pearson(int(asked), n, alpha)
        if not low <= shares[name] <= high:
            return f"{name}: asked {asked:,} times of {n:,}, expected {shares[name] * n:,.0f}"
        if wrong := wrong_cell(counts, cells, asked, alpha):
            return f"{name}: {wrong}"
    return ""


def _shares_asked(form: Form) -> dict[str, float]:
    """How likely each question is asked: groups drawn of all groups."""
    sampling = form["sampling"]
    share = sampling["draw"] / len(sampling["groups"]) if sampling else 1.0
    return {question["id"]: share for question in questions(form)}
