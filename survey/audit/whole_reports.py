"""Checks of whole reports: only the codes depend on the answers, exactly as the channels say.

Surveys of two questions, made from the real one, are small enough to run every draw of a report.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, pairwise, product
from typing import Any, Literal

from survey.audit.channels import (
    Truth,
    distribution,
    draws_below,
    sequences,
    smaller_bits,
    smaller_space,
    smaller_table,
    spread,
)
from survey.audit.node import Check, Node
from survey.audit.respondents import (
    Answers,
    Form,
    answers_of,
    joint_combinations,
    patterns,
    questions,
    truths,
)
from survey.mechanism import (
    AnyChannel,
    BitVector,
    HalfSpace,
    SubsetSelection,
    WeightTable,
    channel_from_json,
)
from survey.mechanism.joint_response import marginal_response
from survey.questionnaire.canonical import canonical_json
from survey.questionnaire.definition import report_body
from survey.questionnaire.kinds import kind_of

GROUP = "whole reports"

LIMIT = 120_000
"""Maximum number of reports with which one pair of questions is enumerated."""

Size = Literal["real", "small", "tiny"]
SIZES: Sequence[tuple[Size, Size]] = [
    ("real", "real"),
    ("small", "small"),
    ("small", "tiny"),
    ("tiny", "small"),
    ("tiny", "tiny"),
]

ENUMERATED_SEQUENCES = 100_000
"""Maximum number of sequences to run completely; above it, one draw varies at a time."""

DRAWS, POSITIONS = 24, 3
"""For many draws: how many run through all their values, beside how many values of the others."""

ID_BYTES = tuple(range(3, 256, 16))
REPORT_ID = "AxMjM0NTY3ODk6Ozw9Pj8w"
"""ID_BYTES in base64url."""

ReportCodes = tuple[int | str | None, ...]

PAIRS_PER_RUN = 20
"""Pairs of questions that one run of Node checks."""


@dataclass(frozen=True)
class Pair:
    """A survey of two questions, or of those of a joint response, and the size of the channels."""

    form: Form
    sizes: tuple[Size, Size]

    @property
    def name(self) -> str:
        """The question ids."""
        return " + ".join(question["id"] for question in questions(self.form))

    @property
    def is_joint(self) -> bool:
        """Whether the questions are those of a joint response."""
        return "joint" in questions(self.form)[0]


@dataclass(frozen=True)
class Case:
    """A pair of questions, and the ids of those that are asked, or None without sampling."""

    pair: Pair
    sample: tuple[str, ...] | None

    @cached_property
    def form(self) -> Form:
        """The definition on the device; with a sample, a third question is never asked."""
        if self.sample is None:
            return self.pair.form
        pair = questions(self.pair.form)
        spare = {**resized(_alone(pair[0]), "tiny"), "id": "never_drawn", "ask_if": None}
        ids = [question["id"] for question in pair]
        is_linked = self.pair.is_joint or any(question["ask_if"] for question in pair)
        groups = [*([ids] if is_linked else [[name] for name in ids]), [spare["id"]]]
        sampling = {"draw": 1 if is_linked else len(self.sample), "groups": groups}
        pages = [*self.pair.form["pages"], {"title": "", "questions": [spare]}]
        return {**self.pair.form, "pages": pages, "sampling": sampling}

    @cached_property
    def canonical(self) -> bytes:
        """The definition as the server sends it."""
        return canonical_json(dict(self.form))

    def answers(self) -> list[dict[str, Any]]:
        """Return every pair of answers, without unanswered questions."""
        pair = questions(self.pair.form)
        names = [question["id"] for question in pair]
        return [
            {name: a for name, a in zip(names, answers, strict=True) if a is not None}
            for answers in product(*map(answers_of, pair))
        ]

    def channels(self) -> dict[str, AnyChannel]:
        """Return the channels of the questions that are asked, in the order of their codes."""
        return {
            question["id"]: channel_from_json(question["channel"])
            for question in questions(self.form)
            if self.sample is None or question["id"] in self.sample
        }

    def device_channels(self) -> list[AnyChannel]:
        """Return the channels that the device runs, in the order of their draws."""
        if self.pair.is_joint:
            return [channel_from_json(questions(self.form)[0]["joint"]["channel"])]
        return list(self.channels().values())

    def request(self) -> dict[str, Any]:
        """Return the request to the client."""
        return {
            "canonical": self.canonical.decode("utf-8"),
            "answers": self.answers(),
            "idBytes": ID_BYTES,
            "circumstances": {"stratum": "", "invitation": "", "drawn": self.sample},
        }


def pairs(form: Form) -> Iterator[Pair]:
    """Pair each question with the next, the last with the first, and each with its condition.

    The questions of each joint response follow, all of them together.
    """
    all_questions = list(map(_alone, questions(form)))
    if len(all_questions) == 1:
        (only,) = all_questions
        yield pair(form, only, {**only, "id": f"{only['id']}_again", "ask_if": None})
        return
    neighbours = [*pairwise(all_questions), (all_questions[-1], all_questions[0])]
    for first, second in neighbours:
        yield pair(form, first, second)
    by_id = {question["id"]: question for question in all_questions}
    for question in all_questions:
        condition = question["ask_if"] and by_id[question["ask_if"]["question"]]
        if condition and (condition, question) not in neighbours:
            yield pair(form, condition, question)
    for question in questions(form):
        if "joint" in question and question["id"] == question["joint"]["questions"][0]:
            yield joint_pair(form, question["joint"]["questions"])


def _alone(question: Form) -> Form:
    """Return a question of a joint response as one that is randomized by its part alone."""
    return {name: value for name, value in question.items() if name != "joint"}


def joint_pair(form: Form, ids: Sequence[str]) -> Pair:
    """Return the survey of the questions of a joint response, with small weights if necessary.

    Of a half-space that is too large, the survey has the first three questions.
    """
    members = [question for question in questions(form) if question["id"] in ids]
    channel = channel_from_json(members[0]["joint"]["channel"])
    sizes: tuple[Size, Size] = ("real", "real")
    if math.prod(len(answers_of(member)) for member in members) * sequences(channel) > LIMIT:
        sizes = ("small", "small")
        if isinstance(channel, HalfSpace):
            members = members[:3]
            channel = smaller_space(channel, len(members))
        else:
            channel = SubsetSelection(channel.options, 1, 3, 1)
    assert isinstance(channel, SubsetSelection | HalfSpace)  # noqa: S101  the format
    pages = [
        {
            "title": "",
            "questions": [
                {
                    **member,
                    "channel": marginal_response(channel, len(member["options"])).to_json(),
                    "joint": {
                        "questions": [question["id"] for question in members],
                        "channel": channel.to_json(),
                    },
                }
            ],
        }
        for member in members
    ]
    return Pair({**form, "pages": pages, "sampling": None}, sizes)


def pair(form: Form, first: Form, second: Form) -> Pair:
    """Return the largest survey of two questions that can be enumerated."""
    for sizes in SIZES:
        if "real" in sizes and not (_has_few_answers(first) and _has_few_answers(second)):
            continue
        two_questions = [resized(first, sizes[0]), resized(second, sizes[1])]
        if math.prod(map(_number_of_reports, two_questions)) <= LIMIT:
            break
    linked = map(without_neighbors, _linked(*two_questions))
    pages = [{"title": "", "questions": [question]} for question in linked]
    return Pair({**without_translations(form), "pages": pages, "sampling": None}, sizes)


def without_neighbors(question: Form) -> Form:
    """Return a question without the keys that refer to others: its matrix and earlier answers."""
    return {name: value for name, value in question.items() if name not in ("matrix", "piped")}


def without_translations(form: Form) -> Form:
    """Return a survey without its translations, whose structure must match all of its questions."""
    return {name: value for name, value in form.items() if name != "translations"}


def _has_few_answers(question: Form) -> bool:
    """Return whether the answers can be listed: 1,000 options have 2^1000 sets."""
    is_multiple = kind_of(question).is_multiple
    return not is_multiple or len(question["options"]) <= 8


def _number_of_reports(question: Form) -> int:
    return len(answers_of(question)) * sequences(channel_from_json(question["channel"]))


def _linked(first: Form, second: Form) -> tuple[Form, Form]:
    """Remove both conditions, unless the second question depends on the first."""
    condition = second["ask_if"]
    if condition is None or condition["question"] != first["id"]:
        return {**first, "ask_if": None}, {**second, "ask_if": None}
    remaining = [option["id"] for option in first["options"]]
    triggers = [option for option in condition["options"] if option in remaining] or remaining[:1]
    # If all options were triggers, the second question would never be hidden.
    triggers = triggers if len(triggers) < len(remaining) else triggers[:1]
    return {**first, "ask_if": None}, {**second, "ask_if": {**condition, "options": triggers}}


def resized(question: Form, size: Size) -> Form:
    """Return the question unchanged, or with few ordinary options and small weights."""
    if size == "real":
        return question
    ordinary, T = (2, 3) if size == "small" else (1, 2)
    if kind_of(question).is_numeric:
        return _smaller_grid(question, ordinary + 1)
    if kind_of(question).is_multiple:
        return _smaller_multiple_choice(question, ordinary, T)
    # A ranking has at least three options.
    return _smaller_choice(question, 3 if kind_of(question).is_ranking else max(ordinary, 2), T)


def _smaller_grid(question: Form, points: int) -> Form:
    table = channel_from_json(question["channel"])
    assert isinstance(table, WeightTable)  # noqa: S101  see the definition's format
    points = min(points, question["grid"]["points"])
    grid = {**question["grid"], "points": points}
    return {**question, "grid": grid, "channel": smaller_table(table, points).to_json()}


def _smaller_multiple_choice(question: Form, ordinary: int, T: int) -> Form:
    channel = channel_from_json(question["channel"])
    first_exclusive = len(question["options"]) - question["alone"]
    ordinary_options = min(ordinary, first_exclusive)
    options = [*question["options"][:ordinary_options], *question["options"][first_exclusive:]]
    max_ticks = min(question["max_ticks"], ordinary_options)
    form: dict[str, Any] = {**question, "options": options, "max_ticks": max_ticks}
    if isinstance(channel, BitVector):
        smaller = smaller_bits(channel, ordinary_options, T, sampled=ordinary)
        return {**form, "channel": smaller.to_json()}
    if isinstance(channel, HalfSpace):
        return {**form, "channel": smaller_space(channel, ordinary_options).to_json()}
    return {**form, "channel": SubsetSelection(len(patterns(form)), 1, T, 1).to_json()}


def _smaller_choice(question: Form, ordinary: int, T: int) -> Form:
    channel = channel_from_json(question["channel"])
    no_answers = {question["opt_out"], question["not_applicable"]}
    plain = [option for option in question["options"] if option["id"] not in no_answers]
    special = [option for option in question["options"] if option["id"] in no_answers]
    if isinstance(channel, SubsetSelection) and channel.d > 1:
        ordinary = 3
    plain = plain[:ordinary]
    options = [*plain, *special]
    # The points of a scale are its ordinary options.
    grid = question["grid"] and {**question["grid"], "points": len(plain)}
    if isinstance(channel, WeightTable):
        smaller = smaller_table(channel, len(options) - channel.no_answers).to_json()
    else:
        assert isinstance(channel, SubsetSelection)  # noqa: S101  see the definition's format
        k = len(options)
        smaller = SubsetSelection(k, min(channel.d, k - 1), T, 1).to_json()
    return {**question, "options": options, "grid": grid, "channel": smaller}


def draw_questions(
    groups: Sequence[Sequence[str]], draw: int, uniform_below: Callable[[int], int]
) -> frozenset[str]:
    """Return the questions of `draw` groups by a partial Fisher-Yates shuffle, one draw each.

    >>> sorted(draw_questions([["a"], ["b"], ["c", "d"]], 1, lambda n: n - 1))
    ['c', 'd']
    """
    deck = list(groups)
    for i in range(draw):
        j = i + uniform_below(len(deck) - i)
        deck[i], deck[j] = deck[j], deck[i]
    return frozenset(name for group in deck[:draw] for name in group)


def check_question_sampling(node: Node, form: Form) -> list[Check]:
    """Check that every choice of groups is equally likely; no check if all questions are asked."""
    if form["sampling"] is None:
        return []
    groups, draw = form["sampling"]["groups"], form["sampling"]["draw"]
    below = [len(groups) - i for i in range(draw)]
    is_small = math.prod(below) <= ENUMERATED_SEQUENCES
    run = _run_all_draws if is_small else _run_single_draws
    ok, detail = run(node, groups, below)
    detail = detail if ok else "the choices are not equally likely"
    return [Check(GROUP, "sampled questions", ok, detail)]


def _run_all_draws(
    node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]
) -> tuple[bool, str]:
    """Run every sequence of draws; return whether all choices are equally likely, and a summary."""
    answer = node.ask(questionSamples=[{}])["questionSamples"][0]
    counts: dict[frozenset[str], int] = {}
    for outcome, count in answer["outcomes"].items():
        names = frozenset(json.loads(outcome))
        counts[names] = counts.get(names, 0) + count
    draw = len(below)
    choices = [
        frozenset(name for group in choice for name in group)
        for choice in combinations(groups, draw)
    ]
    ok = answer["ranges"] == below and counts == dict.fromkeys(choices, math.factorial(draw))
    return ok, (
        f"every draw of {draw} of {len(groups)} groups: {len(choices)} choices, equally likely"
    )


def _run_single_draws(
    node: Node, groups: Sequence[Sequence[str]], below: Sequence[int]
) -> tuple[bool, str]:
    """Run each draw through all its values, with a few values of the other draws."""
    requests = [{"draws": draws} for draws in _single_draws(below)]
    answers = node.ask(questionSample=requests)["questionSample"]
    ok = all(
        answer["ranges"] == below and _is_expected_choice(answer, groups, request["draws"])
        for request, answer in zip(requests, answers, strict=True)
    )
    varied = len(spread(len(below), DRAWS))
    return ok, (
        f"{len(below)} of {len(groups)} groups: {varied} of {len(below)} draws through every "
        f"value, {len(requests):,} choices exactly those of a shuffle"
    )


def _single_draws(below: Sequence[int]) -> Iterator[list[int]]:
    for position in range(POSITIONS):
        draws = [position * (n - 1) // (POSITIONS - 1) for n in below]
        for at in spread(len(below), DRAWS):
            for value in range(below[at]):
                yield [*draws[:at], value, *draws[at + 1 :]]


def _is_expected_choice(
    answer: dict[str, Any], groups: Sequence[Sequence[str]], draws: Sequence[int]
) -> bool:
    values = iter(draws)
    expected = draw_questions(groups, len(draws), lambda _: next(values))
    return len(answer["questions"]) == len(expected) and expected == set(answer["questions"])


def check_pairs(node: Node, form: Form) -> Iterator[Check]:
    """Check every report of two questions at a time, for all answers and samples."""
    is_sampled = form["sampling"] is not None
    cases = [(pair, list(_cases(pair, is_sampled=is_sampled))) for pair in pairs(form)]
    for start in range(0, len(cases), PAIRS_PER_RUN):
        batch = cases[start : start + PAIRS_PER_RUN]
        requests = [case.request() for _, pair_cases in batch for case in pair_cases]
        all_answers = iter(node.ask(reports=requests)["reports"])
        for pair, pair_cases in batch:
            answers = list(islice(all_answers, len(pair_cases)))
            mismatch = next(filter(None, map(_case_mismatch, pair_cases, answers)), "")
            yield Check(GROUP, pair.name, not mismatch, mismatch or _summary(pair, answers))


def _cases(pair: Pair, *, is_sampled: bool) -> Iterator[Case]:
    """Ask both questions; if the survey samples its questions, also each of them alone."""
    if not is_sampled:
        yield Case(pair, None)
        return
    two_questions = questions(pair.form)
    names = tuple(question["id"] for question in two_questions)
    yield Case(pair, names)
    if not pair.is_joint and not any(question["ask_if"] for question in two_questions):
        yield from (Case(pair, (name,)) for name in names)


def _summary(pair: Pair, answers: Sequence[Mapping[str, Any]]) -> str:
    scopes = {
        ("real", "real"): "every draw of both channels",
        ("small", "small"): "every draw of small channels of the same kinds",
    }
    tables = [table for answer in answers for table in answer["tables"]]
    runs = sum(count for table in tables for _, count in table["counts"])
    scope = scopes.get(pair.sizes, "every draw of very small channels of the same kinds")
    if len(answers) > 1:
        scope += ", asked together and each alone"
    if any(question["ask_if"] for question in questions(pair.form)):
        scope += ", also with the second question hidden"
    relation = "exactly those of the joint response" if pair.is_joint else "independent and exact"
    return (
        f"{scope}: {runs:,} reports, identical in all bytes but the codes; the codes are {relation}"
    )


def _case_mismatch(case: Case, answer: Mapping[str, Any]) -> str:
    """Return the first difference from the expected reports, or ""."""
    bodies = [_parse_codes(body) for body in answer["bodies"]]
    if mismatch := _body_mismatch(case, answer["bodies"], bodies):
        return mismatch
    ranges = [n for channel in case.device_channels() for n in draws_below(channel)]
    for answers, table in zip(case.answers(), answer["tables"], strict=True):
        if table["ranges"] != ranges:
            return f"answers {answers}: the draws differ from the channels'"
        counts = {bodies[at]: count for at, count in table["counts"]}
        if counts != _expected_counts(case, answers):
            return f"answers {answers}: the codes have another distribution than expected"
    return ""


def _parse_codes(body: str) -> ReportCodes:
    """Return the codes of a report, or an empty tuple if its body has no valid codes."""
    try:
        codes = tuple(json.loads(body)["codes"])
    except (ValueError, KeyError, TypeError):
        return ()
    # In a comparison True would equal the code 1.
    return codes if all(type(code) in (int, str, type(None)) for code in codes) else ()


def _body_mismatch(case: Case, bodies: Sequence[str], all_codes: Sequence[ReportCodes]) -> str:
    """Return the first report whose bytes differ from the encoding of its codes, or ""."""
    definition_id = hashlib.sha256(case.canonical).hexdigest()
    length = case.form["report_bytes"]
    for body, codes in zip(bodies, all_codes, strict=True):
        if body.encode() != report_body(definition_id, REPORT_ID, codes, length=length):
            return f"a report's bytes differ from the encoding of its codes: {body[:240]}"
    return ""


def _expected_counts(case: Case, answers: Answers) -> dict[ReportCodes, int]:
    """Return how many sequences of draws give each pair of codes: the product of both tables."""
    true_answers = truths(case.form, answers, case.sample)
    channels = case.channels()
    names = [question["id"] for question in questions(case.form)]
    if case.pair.is_joint:
        return _joint_counts(case, tuple(true_answers[name] for name in channels))
    tables: list[dict[int | str | None, int]] = [
        _channel_counts(channels[name], true_answers[name]) if name in true_answers else {None: 1}
        for name in names
    ]
    return {
        tuple(code for code, _ in cells): math.prod(count for _, count in cells)
        for cells in product(*(table.items() for table in tables))
    }


def _joint_counts(case: Case, truth: tuple[Truth, ...]) -> dict[ReportCodes, int]:
    """Return how many sequences of draws give each combination; null for the question not drawn.

    T for the true combination and L for any other. In a half-space of m questions with G near
    vectors, near (2^m - G) for each near one and far G for any other: two of the three draws choose
    the near and the other vector, of which the report shows one.
    """
    (channel,) = case.device_channels()
    if isinstance(channel, HalfSpace):
        near, far = channel.near * channel.far_count, channel.far * channel.near_count
        needed = channel.agreements
    else:
        assert isinstance(channel, SubsetSelection)  # noqa: S101  see the definition's format
        near, far, needed = channel.T, channel.L, len(truth)
    _, all_combinations = joint_combinations(case.pair.form, questions(case.pair.form)[0])
    not_drawn = [None] * (len(questions(case.form)) - len(truth))
    return {
        (*codes, *not_drawn): near if _agreements(codes, truth) >= needed else far
        for codes in all_combinations
    }


def _agreements(codes: Sequence[int], truth: Sequence[Truth]) -> int:
    return sum(code == answer for code, answer in zip(codes, truth, strict=True))


def _channel_counts(channel: AnyChannel, truth: Truth) -> dict[int | str | None, int]:
    total = sequences(channel)
    return {
        code if channel.report_bits else int(code): int(share * total)
        for code, share in distribution(channel, truth).items()
    }
