"""The design of a whole survey: how many questions each person is asked, and their channels.

Each person is asked s of the M groups of questions, drawn at random. A whole report then changes
the odds by at most the product of the s largest factors of groups, whichever groups are drawn. A
factor below the s-th largest would widen a group's margins without reducing that product, so all
groups get equal parts of the total epsilon. Few questions with a large epsilon each and many
questions with a small one can have the same total: `survey_plan` computes the margins of both.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

from pydantic import TypeAdapter

from survey.errors import ChannelError, DesignError
from survey.estimator.core.arguments import LARGEST_N
from survey.estimator.core.intervals import normal_quantile
from survey.mechanism import HalfSpace, from_epsilon
from survey.mechanism.composition import total_ratio
from survey.mechanism.exact_numbers import GRID, MAX_EPSILON, format_fraction
from survey.mechanism.joint_response import (
    MAX_ITEMS,
    JointMechanism,
    joint_channel,
    marginal_response,
)
from survey.progress import steps
from survey.questionnaire.definition import MAX_JOINT, groups_of, matrices_of
from survey.questionnaire.kinds import DEFAULT_KIND, BaseQuestion, PublishedQuestion, Question
from survey.questionnaire.kinds.base import JointResponse
from survey.questionnaire.limits import MAX_TRUTH_PROBABILITY
from survey.questionnaire.privacy_loss import WEAK_QUESTION_ABOVE, WEAK_REPORT_ABOVE, Questions
from survey.results.plan.compute import LEVEL, SHARES, to_published
from survey.results.plan.question_design import MIN_GAIN, Family, QuestionDesign, question_design
from survey.settings import Caps

LISTED_DRAWS = 12
"""Designs are computed for every number of groups up to this one, then in growing steps."""

EQUAL_FACTOR = 1.03
"""Typical margins that differ by at most this factor count as equal."""

GRR = "grr"

ITEM_OPTIONS = 2
"""Number of options of a question in a half-space."""

Pair = tuple[str, str]
"""The ids of two questions whose answers are to be cross-tabulated."""

Groups = Sequence[Sequence[str]]
"""The ids of the questions in each group. A group is drawn as a whole."""


@dataclass(frozen=True)
class Crossing:
    """Two questions that one response may include.

    share      of respondents who are asked both
    responses  expected number of responses to both
    margin     of a cell of one quarter; infinite without responses, nan for numbers and dates
    """

    ids: Pair
    share: Fraction
    responses: int
    margin: float


@dataclass(frozen=True)
class SurveyDesign:
    """A survey that asks each person `drawn` of the groups of questions.

    `declared` are the crossings that the researcher needs. `together` lists the groups that the
    definition must declare, because no condition links their questions.
    """

    questions: tuple[QuestionDesign, ...]
    groups: tuple[tuple[str, ...], ...]
    drawn: int
    n: int
    declared: tuple[Crossing, ...] = ()

    @cached_property
    def _privacy(self) -> Questions:
        questions = tuple(item.question for item in self.questions)
        return Questions(questions, self.drawn, together=self.groups)

    @cached_property
    def _by_id(self) -> dict[str, QuestionDesign]:
        return {item.question.id: item for item in self.questions}

    @property
    def together(self) -> tuple[tuple[str, ...], ...]:
        linked = conditional_groups([item.question for item in self.questions])
        return tuple(group for group in self.groups if list(group) not in linked)

    @property
    def declarations(self) -> list[tuple[tuple[str, ...], JointMechanism | None]]:
        """The questions of each `[[together]]`, and the mechanism if they are randomized jointly.

        The id of a matrix stands for its rows; a matrix alone needs no declaration.
        """
        joint = {
            item.question.joint.questions: item.question.joint.mechanism
            for item in self.questions
            if item.question.joint
        }
        declared = (
            (tuple(dict.fromkeys(self.written_place(id_)[0] for id_ in group)), joint.get(group))
            for group in self.together
        )
        return [(ids, mechanism) for ids, mechanism in declared if len(ids) > 1]

    def written_place(self, id_: str) -> tuple[str, int]:
        """Return the id of the matrix of a question, or its own, and the number of its rows."""
        matrix = self._by_id[id_].question.matrix
        if not matrix:
            return id_, 1
        return matrix.id, len(self._matrices[matrix.id])

    @cached_property
    def _matrices(self) -> dict[str, tuple[str, ...]]:
        return matrices_of(item.question for item in self.questions)

    @property
    def ratio(self) -> Fraction:
        """The odds factor, e^epsilon, of a whole report."""
        return self._privacy.ratio

    @property
    def answer_ratio(self) -> Fraction:
        """The largest odds factor of all reports that depend on one answer."""
        return max(self._privacy.linked_ratios.values())

    @property
    def share_asked(self) -> Fraction:
        """The share of respondents who are asked a given question."""
        return Fraction(self.drawn, len(self.groups))

    @property
    def typical_margin(self) -> float:
        """The geometric mean of the typical margins of all questions and of declared crossings."""
        margins = [item.typical for item in self.questions]
        margins += [crossing.margin for crossing in self.declared]
        return _geometric_mean(margin for margin in margins if not math.isnan(margin))

    @property
    def allows_declared(self) -> bool:
        """Whether some people are asked both questions of every declared crossing."""
        return all(crossing.share for crossing in self.declared)

    @property
    def separate_share(self) -> Fraction:
        """The share of respondents who are asked two given groups: s(s-1)/(M(M-1))."""
        s, M = self.drawn, len(self.groups)
        return Fraction(s * (s - 1), M * (M - 1)) if M > 1 else Fraction(0)

    @cached_property
    def cell_margin(self) -> float:
        """The geometric mean of the margins of cells over all pairs from different groups."""
        place = {id_: i for i, group in enumerate(self.groups) for id_ in group}
        responses = math.floor(self.n * self.separate_share)
        return _geometric_mean(
            cell_margin(first.variance, second.variance, responses)
            for first, second in combinations(self.questions, 2)
            if place[first.question.id] != place[second.question.id]
            and not first.is_mean
            and not second.is_mean
        )

    def crossing(self, first: str, second: str) -> Crossing:
        """Return the responses and the margin that two questions, by their ids, have in common."""
        in_one_group = any(first in group and second in group for group in self.groups)
        share = self.share_asked if in_one_group else self.separate_share
        responses = math.floor(self.n * share)
        margin = _pair_margin(self._by_id[first], self._by_id[second], responses)
        return Crossing((first, second), share, responses, margin)


@dataclass(frozen=True)
class SurveyPlan:
    """The designs of a survey by how many groups each person is asked, ascending.

    With declared crossings, a second series of designs puts the crossed questions in one group.
    `in_one_report` is a design in which `items`, all free yes/no questions, are in a half-space
    that nobody declared, if its typical margin is more than 5% below that of the recommended one.
    They could then not be crossed with each other.
    """

    designs: tuple[SurveyDesign, ...]
    in_one_report: SurveyDesign | None = None
    items: tuple[str, ...] = ()

    @property
    def allows_declared(self) -> bool:
        """Whether a design asks some people both questions of every declared crossing."""
        return any(design.allows_declared for design in self.designs)

    @cached_property
    def recommended(self) -> SurveyDesign:
        """The design with the smallest typical margin that allows all declared crossings.

        Among designs within 3% of it, this is the one that asks most questions: each answer then
        reveals less, and more responses can be cross-tabulated.
        """
        allowed = [design for design in self.designs if design.allows_declared]
        if not allowed:
            raise DesignError(
                "no design within this total epsilon asks anybody both crossed questions"
            )
        smallest = min(design.typical_margin for design in allowed)
        near = [design for design in allowed if design.typical_margin <= EQUAL_FACTOR * smallest]
        return max(near, key=lambda design: design.share_asked)

    def design_for(self, drawn: int, groups: int | None = None) -> SurveyDesign:
        """Return the first design that asks each person `drawn` groups, of `groups` in all."""
        for design in self.designs:
            if design.drawn == drawn and groups in (None, len(design.groups)):
                return design
        listed = ", ".join(f"{design.drawn} of {len(design.groups)}" for design in self.designs)
        raise DesignError(f"no design asks {drawn} groups; the designs ask {listed}")


def survey_plan(
    questions: Sequence[BaseQuestion],
    total: Fraction,
    n: int,
    *,
    together: Groups = (),
    crossings: Sequence[Pair] = (),
    caps: Caps | None = None,
    answer_limit: Fraction | None = None,
) -> SurveyPlan:
    """Return designs for n respondents whose whole report has at most this total epsilon.

    `together` lists questions that are drawn together. Crossed questions are planned in separate
    groups, and in one group; up to three single choices in one group are randomized jointly over
    their combinations, and three to twenty yes/no questions in a half-space, where that makes their
    margins and those of their declared crossings smaller (by the geometric mean).
    `question_design` chooses the mechanisms. No answer, with all reports that depend on it, gets
    more than the epsilon `answer_limit`. By default, no answer is weak unless the whole report is.

    Raises DesignError for a total or n out of range, an unknown or repeated id in a crossing, or if
    the total is too small for any design.
    """
    _check(questions, total, n, crossings)
    limit = answer_limit or _default_limit(total)
    builder = _Builder(questions, total, n, crossings, caps or Caps(), limit)
    published = [to_published(question) for question in questions]
    separate = conditional_groups(published, together)
    joined = conditional_groups(published, [*together, *crossings])
    designs: list[SurveyDesign] = []
    mistake = ""
    for groups in (separate, joined) if joined != separate else (separate,):
        series, error = builder.designs(groups)
        designs += series
        mistake = error or mistake
    if not designs:
        raise DesignError(f"total epsilon {format_fraction(total)} is too small: {mistake}")
    plan = SurveyPlan(tuple(designs))
    free = builder.free_items([id_ for group in together for id_ in group])
    if not MAX_JOINT <= len(free) <= MAX_ITEMS or not plan.allows_declared:
        return plan
    series, _ = builder.designs(conditional_groups(published, [*together, *crossings, free]))
    in_half_space = [
        design for design in series if any(item.in_half_space(free) for item in design.questions)
    ]
    best = min(in_half_space, key=lambda design: design.typical_margin, default=None)
    if best is None or best.typical_margin * MIN_GAIN >= plan.recommended.typical_margin:
        return plan
    return replace(plan, in_one_report=best, items=tuple(free))


def limit_of(factor: float) -> Fraction:
    """Return the epsilon of an odds factor, ln(factor), rounded down to thousandths.

    >>> float(limit_of(9))
    2.197
    """
    return Fraction(math.floor(math.log(factor) * GRID), GRID)


def _default_limit(total: Fraction) -> Fraction:
    """Return the largest epsilon of an answer that is not weak, or the total of a weak report."""
    is_weak = total > limit_of(WEAK_REPORT_ABOVE)
    return total if is_weak else limit_of(WEAK_QUESTION_ABOVE)


def yes_no_questions(number: int) -> list[BaseQuestion]:
    """Return yes/no questions q1, q2, ... without "Prefer not to say", for a first plan.

    >>> plan = survey_plan(yes_no_questions(8), Fraction(2), 2_000)
    >>> plan.recommended.drawn
    1
    """
    adapter: TypeAdapter[BaseQuestion] = TypeAdapter(Question)
    form = {"type": DEFAULT_KIND.type, "text": "?", "prefer_not_to_say": False, "epsilon": 1}
    return [adapter.validate_python({"id": f"q{i + 1}", **form}) for i in range(number)]


def present_design(
    questions: Sequence[BaseQuestion],
    groups: Groups,
    drawn: int,
    n: int,
    crossings: Sequence[Pair] = (),
) -> SurveyDesign:
    """Return the design that a survey has now, for comparison; it asks `drawn` of the groups."""
    _check(questions, Fraction(1), n, crossings)
    responses = _responses(n, drawn, groups)
    designs = []
    for question in steps(questions):
        designs.append(QuestionDesign.of(to_published(question), question.epsilon, responses))
    return _design(designs, groups, drawn, n, crossings)


def conditional_groups(
    questions: Iterable[PublishedQuestion], together: Groups = ()
) -> list[list[str]]:
    """Return the ids of questions in groups, formed by their conditions and by `together`.

    Joint responses form no groups here, because a plan may randomize their questions separately.
    """
    return groups_of((replace(question, joint=None) for question in questions), together)


def group_budgets(sizes: Sequence[int], drawn: int) -> list[Fraction]:
    """Return each group's part of the total epsilon, of which a person uses `drawn` parts.

    `sizes` are the numbers of questions in the groups. The `drawn` largest parts add up to 1, and
    the product of the questions' epsilons is the largest possible, because a margin is nearly
    proportional to 1/epsilon. By the conditions of Karush, Kuhn and Tucker, with Q questions:

        part = max(size/Q, t),  t = S/((s - j) Q)

    where the j largest groups have size/Q > t, and S is the number of questions in the others. Each
    part is 1/s if no questions are linked, and size/Q if all groups are asked.

    >>> [str(part) for part in group_budgets([1, 1, 1], 2)]
    ['1/2', '1/2', '1/2']
    >>> [str(part) for part in group_budgets([3, 1, 1, 1], 2)]
    ['1/2', '1/2', '1/2', '1/2']
    >>> [str(part) for part in group_budgets([3, 1], 2)]
    ['3/4', '1/4']
    """
    others, slots = sorted(sizes), drawn
    while others[-1] * slots > sum(others):
        others.pop()
        slots -= 1
    t = Fraction(sum(others), slots * sum(sizes))
    return [max(Fraction(size, sum(sizes)), t) for size in sizes]


def question_epsilons(groups: Groups, drawn: int, total: Fraction) -> dict[str, Fraction]:
    """Return the epsilon of each question, by its id: equal ones, rounded down to thousandths.

    >>> epsilons = question_epsilons([["a"], ["b"], ["c"]], 2, Fraction("2.9"))
    >>> [float(epsilon) for epsilon in epsilons.values()]
    [1.45, 1.45, 1.45]
    """
    budgets = group_budgets([len(group) for group in groups], drawn)
    return {
        id_: _in_thousandths(total * part / len(group))
        for group, part in zip(groups, budgets, strict=True)
        for id_ in group
    }


def cell_margin(first: float, second: float, responses: int) -> float:
    """Return the margin of a cell of one quarter of a cross-tab of two questions.

    `first` and `second` are n Var of a share of one half of each question. The estimate of a cell
    is the mean of products of two independent unbiased values a and b, so that at a cell of
    pi^2 = 1/4 with independent answers n Var = E[a^2] E[b^2] - pi^4, where E[a^2] = Var(a) + pi^2.

    >>> round(cell_margin(0.25, 0.25, 1000), 4)  # without randomization: z sqrt(3/16/n)
    0.0268
    """
    pi = SHARES[0]
    return _margin((first + pi**2) * (second + pi**2) - pi**4, responses)


def _pair_margin(first: QuestionDesign, second: QuestionDesign, responses: int) -> float:
    joint = first.question.joint
    if joint is None or joint != second.question.joint:
        return cell_margin(first.variance, second.variance, responses)
    if isinstance(joint.channel, HalfSpace):
        return math.inf  # its reports are not cross-tabulated with each other
    cells = first.question.channel.options * second.question.channel.options
    p, q = (channel := marginal_response(joint.channel, cells)).p, channel.q
    # n Var = lambda (1 - lambda)/(p - q)^2: a combination is reported like an option.
    rate = q + (p - q) * SHARES[0] ** 2
    return _margin(rate * (1 - rate) / (p - q) ** 2, responses)


def _margin(variance: float, responses: int) -> float:
    """Return z sqrt(Var/n), nan for a question without shares."""
    if math.isnan(variance):
        return math.nan
    return normal_quantile(LEVEL) * math.sqrt(variance / responses) if responses else math.inf


def _check(
    questions: Sequence[BaseQuestion], total: Fraction, n: int, crossings: Sequence[Pair]
) -> None:
    if not questions:
        raise DesignError("a design needs at least one question")
    if not 0 < total <= MAX_EPSILON * len(questions):
        raise DesignError(
            f"total epsilon {format_fraction(total)} must be above 0 and at most "
            f"{MAX_EPSILON * len(questions)} for {len(questions)} questions"
        )
    if not 1 <= n <= LARGEST_N:
        raise DesignError(f"n = {n:,} must be from 1 to {LARGEST_N:,}")
    ids = [question.id for question in questions]
    for pair in crossings:
        for id_ in pair:
            if id_ not in ids:
                raise DesignError(f"{id_} is not a question; questions: {', '.join(ids)}")
        if pair[0] == pair[1]:
            raise DesignError(f"a crossing needs two questions, not {pair[0]} with itself")


def _draws(groups: int) -> list[int]:
    """Return the numbers of groups to compute designs for.

    >>> _draws(5), _draws(40)[-4:]
    ([1, 2, 3, 4, 5], [12, 18, 27, 40])
    """
    draws = list(range(1, min(groups, LISTED_DRAWS) + 1))
    while draws[-1] < groups:
        draws.append(min(draws[-1] * 3 // 2, groups))
    return draws


def _responses(n: int, drawn: int, groups: Groups) -> int:
    return max(math.floor(n * Fraction(drawn, len(groups))), 1)


@dataclass(frozen=True)
class _Builder:
    """Builds the designs of the questions of one survey."""

    questions: Sequence[BaseQuestion]
    total: Fraction
    n: int
    crossings: Sequence[Pair]
    caps: Caps
    answer_limit: Fraction

    @cached_property
    def _linked_groups(self) -> dict[str, list[str]]:
        """The questions that conditions link to each question, by its id."""
        published = [to_published(question) for question in self.questions]
        return {id_: group for group in conditional_groups(published) for id_ in group}

    def designs(self, groups: Groups) -> tuple[list[SurveyDesign], str]:
        """Return the designs that ask some of the groups or all, and why others are impossible."""
        designs, mistake = [], ""
        for drawn in _draws(len(groups)):
            try:
                proposals = self.proposals(groups, drawn)
            except ChannelError as error:
                mistake = str(error)
                continue
            designs.append(_design(proposals, groups, drawn, self.n, self.crossings))
        return designs, mistake

    def free_items(self, declared: Collection[str]) -> list[str]:
        """Return the ids of questions with two options that belong together with no other."""
        crossed = {id_ for pair in self.crossings for id_ in pair}
        return [
            question.id
            for question in self.questions
            if self._can_join(question)
            and len(question.all_options) == ITEM_OPTIONS
            and question.id not in crossed
            and question.id not in declared
        ]

    def _can_join(self, question: BaseQuestion) -> bool:
        return (
            question.kind.is_single
            and question.matrix is None
            and question.mechanism in (None, GRR)
            and len(self._linked_groups[question.id]) == 1
        )

    @cached_property
    def _families(self) -> dict[str, Family]:
        return {question.id: Family.of(question) for question in self.questions}

    def proposals(self, groups: Groups, drawn: int) -> list[QuestionDesign]:
        """Return the design of each question if `drawn` groups are asked. Raises ChannelError."""
        epsilons = question_epsilons(groups, drawn, self.total)
        responses = _responses(self.n, drawn, groups)
        by_id = {question.id: question for question in self.questions}
        designs: dict[str, QuestionDesign] = {}
        for group in groups:
            members = [by_id[id_] for id_ in group]
            separate = [
                question_design(
                    self._families[question.id],
                    self._limited(question, epsilons),
                    self.caps,
                    responses,
                )
                for question in members
            ]
            epsilon = min(epsilons[group[0]], self.answer_limit / len(group))
            pairs = [pair for pair in self.crossings if set(pair) <= set(group)]
            candidates = [separate, *self._joint_designs(members, separate, epsilon)]
            best = min(candidates, key=lambda candidate: _objective(candidate, pairs))
            designs |= {design.question.id: design for design in best}
        return [designs[question.id] for question in self.questions]

    def _limited(self, question: BaseQuestion, epsilons: Mapping[str, Fraction]) -> Fraction:
        limit = self.answer_limit / len(self._linked_groups[question.id])
        return min(epsilons[question.id], _in_thousandths(limit))

    def _joint_designs(
        self,
        members: Sequence[BaseQuestion],
        separate: Sequence[QuestionDesign],
        epsilon: Fraction,
    ) -> Iterator[list[QuestionDesign]]:
        """Yield the designs of questions that are randomized as one, by each possible mechanism.

        Each of them states the epsilon, and their joint report spends the sum.
        """
        can_join = len(members) > 1 and all(map(self._can_join, members))
        sizes = [len(question.all_options) for question in members]
        ids = tuple(question.id for question in members)
        mechanisms: list[JointMechanism] = []
        if can_join and len(members) <= MAX_JOINT:
            mechanisms.append("grr")
        if can_join and set(sizes) == {ITEM_OPTIONS} and MAX_JOINT <= len(members) <= MAX_ITEMS:
            mechanisms.append("half_space")
        for mechanism in mechanisms:
            try:
                allowed, joint = _joint_response(ids, sizes, epsilon, mechanism)
            except ChannelError:
                continue
            published = [
                replace(
                    item.question,
                    mechanism=GRR,
                    stated={"epsilon": format_fraction(allowed)},
                    channel=marginal_response(joint.channel, size),
                    joint=joint,
                )
                for item, size in zip(separate, sizes, strict=True)
            ]
            responses = separate[0].responses
            yield [QuestionDesign.of(item, allowed, responses) for item in published]


def _in_thousandths(epsilon: Fraction) -> Fraction:
    return Fraction(math.floor(epsilon * GRID), GRID)


def _joint_response(
    ids: tuple[str, ...], sizes: Sequence[int], epsilon: Fraction, mechanism: JointMechanism
) -> tuple[Fraction, JointResponse]:
    """Return the largest epsilon up to this one, and the joint response that may be published.

    Raises ChannelError if the questions have too many combinations, or no integers fit.
    """

    def build(thousandths: int) -> JointResponse:
        own = (from_epsilon(size, Fraction(thousandths, GRID)).ratio for size in sizes)
        return JointResponse(ids, joint_channel(sizes, total_ratio(own), mechanism))

    def is_excessive(thousandths: int) -> bool:
        channel = build(thousandths).channel
        return any(marginal_response(channel, k).exact_p > MAX_TRUTH_PROBABILITY for k in sizes)

    steps = range(1, math.floor(epsilon * GRID) + 1)
    allowed = len(steps)
    if is_excessive(allowed):
        allowed = bisect_left(steps, True, key=is_excessive)
    return Fraction(allowed, GRID), build(allowed)


def _objective(designs: Sequence[QuestionDesign], pairs: Sequence[Pair]) -> float:
    """Return the geometric mean of the margins of questions and of cells of their crossings."""
    by_id: Mapping[str, QuestionDesign] = {design.question.id: design for design in designs}
    margins = [design.typical for design in designs]
    margins += [_pair_margin(by_id[a], by_id[b], designs[0].responses) for a, b in pairs]
    return _geometric_mean(margin for margin in margins if not math.isnan(margin))


def _design(
    designs: Sequence[QuestionDesign],
    groups: Groups,
    drawn: int,
    n: int,
    crossings: Sequence[Pair],
) -> SurveyDesign:
    design = SurveyDesign(tuple(designs), tuple(map(tuple, groups)), drawn, n)
    return replace(design, declared=tuple(design.crossing(*pair) for pair in crossings))


def _geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean; nan of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan
