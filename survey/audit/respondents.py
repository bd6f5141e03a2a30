"""Simulated respondents: their answers, the truths these become, and their reports.

The rules from answers to truths are written here a second time, independently of the client.
"""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Any

from survey.audit.channels import Truth, ticks
from survey.audit.node import Check, Node
from survey.mechanism import AnyChannel, HalfSpace, SubsetSelection, channel_from_json
from survey.questionnaire.definition import Definition, report_body
from survey.questionnaire.kinds import kind_of

Form = Mapping[str, Any]
"""A definition, or one of its questions, in canonical JSON."""

Answer = int | tuple[int, ...]
Answers = Mapping[str, Answer]

RESPONDENTS = 400

RARE_TOKENS = ("-" * 42 + "0", "z" * 42 + "w", "1" * 42 + "0")
RARE_GROUPS = ("\x01", "\uffff", "1")
"""The first and the last texts in alphabetical order, and texts that are numbers. A client could
recognize them by a comparison without any text of its own."""


@dataclass(frozen=True)
class Respondent:
    """A simulated respondent: answers, sampled questions, and the parameters of the link."""

    answers: dict[str, Answer]
    sample: list[str] | None
    id_bytes: bytes
    stratum: str
    invitation: str
    draws: list[int] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)

    def request(self) -> dict[str, Any]:
        """Return the request to the client."""
        return {
            "answers": self.answers,
            "draws": self.draws,
            "idBytes": list(self.id_bytes),
            "circumstances": {
                "stratum": self.stratum,
                "invitation": self.invitation,
                "drawn": self.sample,
            },
        }


def questions(form: Form) -> list[Form]:
    """Return all questions in the order of their codes."""
    return [question for page in form["pages"] for question in page["questions"]]


def patterns(question: Form) -> list[tuple[int, ...]]:
    """Return all sets of ticks: ordinary sets by their bits, then exclusive options."""
    ordinary = len(question["options"]) - question["alone"]
    sets = [
        options
        for size in range(1, question["max_ticks"] + 1)
        for options in combinations(range(ordinary), size)
    ]
    exclusive = [(option,) for option in range(ordinary, len(question["options"]))]
    return sorted(sets, key=lambda options: sum(2**option for option in options)) + exclusive


def joint_combinations(form: Form, question: Form) -> tuple[list[str], list[tuple[int, ...]]]:
    """Return the ids of a joint response, and all combinations of options, the last fastest."""
    members = [q for q in questions(form) if q["id"] in question["joint"]["questions"]]
    sizes = [range(len(member["options"])) for member in members]
    return [member["id"] for member in members], list(product(*sizes))


def answers_of(question: Form) -> list[Answer | None]:
    """Return every possible answer, and None if the question can be left unanswered."""
    unanswered: list[Answer | None] = [None] if question["opt_out"] else []
    if kind_of(question).is_multiple:
        return [*patterns(question), *([(), None] if unanswered else [])]
    if ranked := _count_ranked(question):
        opt_outs = range(ranked, len(question["options"]))
        return [*permutations(range(ranked)), *opt_outs, *unanswered]
    return [*range(_grid_points(question) + len(question["options"])), *unanswered]


def random_answer(question: Form, rng: random.Random) -> Answer | None:
    """Return one possible answer without listing all of them."""
    if question["opt_out"] and rng.random() < 0.1:
        return None
    n = len(question["options"])
    if ranked := _count_ranked(question):
        if rng.random() < 0.2 and ranked < n:
            return rng.randrange(ranked, n)
        return tuple(rng.sample(range(ranked), ranked))
    if not kind_of(question).is_multiple:
        return rng.randrange(_grid_points(question) + n)
    ordinary = n - question["alone"]
    if question["alone"] and rng.random() < 0.2:
        return (rng.randrange(ordinary, n),)
    limit = min(question["max_ticks"], ordinary)
    return tuple(sorted(rng.sample(range(ordinary), rng.randint(1, limit))))


def all_answers(form: Form, rng: random.Random) -> dict[str, Answer]:
    """Return random answers to all questions, without those that are left unanswered."""
    answers = {question["id"]: random_answer(question, rng) for question in questions(form)}
    return {name: answer for name, answer in answers.items() if answer is not None}


def truths(form: Form, answers: Answers, sample: Sequence[str] | None) -> dict[str, Truth]:
    """Return the truth of every sampled question; a hidden question does not apply."""
    effective: dict[str, Answer] = {}
    true_answers: dict[str, Truth] = {}
    by_id = {question["id"]: question for question in questions(form)}
    for name, question in by_id.items():
        if sample is None or name in sample:
            effective[name] = _effective_answer(question, by_id, answers, effective)
            true_answers[name] = _truth(question, effective[name])
    return true_answers


def _effective_answer(
    question: Form, by_id: Mapping[str, Form], answers: Answers, earlier: Answers
) -> Answer:
    """Return the answer, the opt-out if there is none, or "does not apply" if it is hidden."""
    condition = question["ask_if"]
    if condition is not None:
        answer = earlier[condition["question"]]
        options = by_id[condition["question"]]["options"]
        ids = {options[i]["id"] for i in ([answer] if isinstance(answer, int) else answer)}
        if not ids & set(condition["options"]):
            return _option(question, question["not_applicable"])
    answer = answers.get(question["id"], ())
    return _option(question, question["opt_out"]) if answer == () else answer


def _option(question: Form, option_id: str) -> Answer:
    index = [option["id"] for option in question["options"]].index(option_id)
    if kind_of(question).is_multiple:
        return (index,)
    return _grid_points(question) + index


def _truth(question: Form, answer: Answer) -> Truth:
    if ranked := _count_ranked(question):
        if isinstance(answer, int):
            return math.factorial(ranked) + answer - ranked
        return list(permutations(range(ranked))).index(answer)
    if isinstance(answer, int):
        return answer
    if question["channel"]["kind"] == SubsetSelection.kind:
        return patterns(question).index(answer)
    return ticks(len(question["options"]), answer)


def _count_ranked(question: Form) -> int:
    """Return the number of options in a ranking; 0 for other questions."""
    if not kind_of(question).is_ranking:
        return 0
    return len(question["options"]) - int(question["channel"]["no_answers"])


def _grid_points(question: Form) -> int:
    """Return the number of truths before the options: the points of the grid of a number."""
    return int(question["grid"]["points"]) if kind_of(question).is_numeric else 0


def check_respondents(node: Node, definition: Definition, seed: int) -> Check:
    """Compare reports of all questions with Python's, at random draws and at the ends of ranges."""
    form = json.loads(definition.canonical)
    rng = random.Random(seed)  # noqa: S311  only the choice of respondents
    respondents = [random_respondent(form, rng) for _ in range(RESPONDENTS)]
    bodies = [
        report_of(form, definition.sha256, respondent, _recorded_draws(respondent, rng))
        for respondent in respondents
    ]
    requests = [respondent.request() for respondent in respondents]
    answers = node.ask(respondents=requests)["respondents"]
    mismatch = ""
    for respondent, body, answer in zip(respondents, bodies, answers, strict=True):
        if "refused" in answer or answer["ranges"] != respondent.ranges:
            mismatch = f"{respondent.answers}: the draws have other ranges"
        elif answer["body"].encode() != body:
            mismatch = f"{respondent.answers}: the report differs"
        if mismatch:
            break
    detail = (
        f"{RESPONDENTS} reports of all {len(questions(form))} questions, byte for byte as expected"
    )
    return Check("whole reports", "reports of all questions", not mismatch, mismatch or detail)


def random_respondent(form: Form, rng: random.Random) -> Respondent:
    """Return a respondent who answers all questions or leaves some unanswered."""
    answers = all_answers(form, rng)
    sampling = form["sampling"]
    groups = rng.sample(sampling["groups"], sampling["draw"]) if sampling else []
    has_link = rng.random() < 0.3
    return Respondent(
        answers=answers,
        sample=[name for group in groups for name in group] if sampling else None,
        id_bytes=rng.randbytes(16),
        stratum=random_group(rng) if has_link else "",
        invitation=random_token(rng) if has_link else "",
    )


def random_token(rng: random.Random) -> str:
    """Return the token of an invitation: 32 bytes in base64url, often a rare one."""
    token = base64.urlsafe_b64encode(rng.randbytes(32)).decode("ascii").rstrip("=")
    return rng.choice((token, rng.choice(RARE_TOKENS)))


def random_group(rng: random.Random) -> str:
    """Return a group's name: with escapes and characters of several bytes, or a rare one."""
    name = f'{rng.choice("KÖÅ站ه")}{random_word(rng)} "{rng.randrange(9)}"'
    return rng.choice((name, name, rng.choice(RARE_GROUPS)))


def random_word(rng: random.Random) -> str:
    """Return 3 to 9 letters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9)))


def _recorded_draws(respondent: Respondent, rng: random.Random) -> Callable[[int], int]:
    """Return draws at random and at the ends of their ranges, recorded with the respondent."""

    def draw(n: int) -> int:
        respondent.ranges.append(n)
        respondent.draws.append(rng.choice([0, n - 1, rng.randrange(n), rng.randrange(n)]))
        return respondent.draws[-1]

    return draw


def _joint_report(
    form: Form,
    question: Form,
    joint: AnyChannel,
    truth: tuple[int, ...],
    uniform_below: Callable[[int], int],
) -> Sequence[int]:
    if isinstance(joint, HalfSpace):
        return joint.perturb_bits(truth, uniform_below)
    assert isinstance(joint, SubsetSelection)  # noqa: S101  see the definition's format
    _, all_combinations = joint_combinations(form, question)
    return all_combinations[int(joint.perturb_one(all_combinations.index(truth), uniform_below))]


def report_of(
    form: Form, definition_id: str, respondent: Respondent, uniform_below: Callable[[int], int]
) -> bytes:
    """Return the respondent's report, computed with the server's own channels."""
    true_answers: Mapping[str, Any] = truths(form, respondent.answers, respondent.sample)
    codes: dict[str, int | str] = {}
    for question in questions(form):
        name = question["id"]
        if name not in true_answers or name in codes:
            continue
        if "joint" not in question:
            channel = channel_from_json(question["channel"])
            codes[name] = channel.perturb_one(true_answers[name], uniform_below)
            continue
        members: Sequence[str] = question["joint"]["questions"]
        joint = channel_from_json(question["joint"]["channel"])
        truth = tuple(true_answers[member] for member in members)
        codes |= zip(
            members, _joint_report(form, question, joint, truth, uniform_below), strict=True
        )
    return report_body(
        definition_id,
        base64.urlsafe_b64encode(respondent.id_bytes).decode("ascii").rstrip("="),
        [codes.get(question["id"]) for question in questions(form)],
        stratum=respondent.stratum,
        invitation=respondent.invitation,
        length=form["report_bytes"],
    )
