"""Designs of a whole survey: their privacy is exact, their margins true, their budgets optimal."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import chain, combinations, product

import numpy as np
import pytest
from pydantic import TypeAdapter

from survey.errors import ChannelError, DesignError
from survey.estimator import histogram
from survey.estimator.core.intervals import normal_quantile
from survey.mechanism import from_epsilon, grr, multiple_choice
from survey.mechanism.composition import log_rounded_up
from survey.mechanism.numeric import hybrid, optimal_piecewise, square_wave
from survey.questionnaire.definition import groups_of
from survey.questionnaire.kinds import Question
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import Questions
from survey.results.plan.question_design import compare_bins, mechanism_gains, question_design
from survey.results.plan.survey_design import (
    cell_margin,
    group_budgets,
    present_design,
    survey_plan,
    yes_no_questions,
)
from survey.settings import Caps
from tests import surveys
from tests.cases import each_case
from tests.surveys import publish

YES_NO = {"type": "yes_no", "prefer_not_to_say": False}
SKIPS = {"ask_if": {"question": "a", "options": ["yes"]}, "does_not_apply": True}


def choice(k: int, **more):
    options = [{"id": f"o{i}", "label": str(i)} for i in range(k)]
    return {"type": "single_choice", "prefer_not_to_say": False, "options": options, **more}


def questions(**forms):
    adapter = TypeAdapter(Question)
    return [
        adapter.validate_python({"id": id_, "text": "?", "epsilon": 1, **form}, context=Caps())
        for id_, form in forms.items()
    ]


def question(**form):
    return questions(a=form)[0]


MIXED = questions(
    a=YES_NO,
    b={**YES_NO, **SKIPS},
    c=choice(12),
    d={"type": "multiple_choice", "options": choice(4)["options"]},
    e={"type": "number", "low": 0, "high": 12},
    f={"type": "scale", "low": 1, "high": 7},
)


@pytest.mark.parametrize("total", ["0.7", "7.9"])
def test_no_draw_of_groups_exceeds_the_total(total):
    for design in survey_plan(MIXED, Fraction(total), 2_000).designs:
        ratios = {item.question.id: item.question.channel.ratio for item in design.questions}
        products = (
            math.prod(ratios[id_] for group in draw for id_ in group)
            for draw in combinations(groups_of(MIXED), design.drawn)
        )
        assert max(products) == design.ratio
        assert log_rounded_up(design.ratio) <= float(total), design.drawn


def test_separate_questions_have_equal_epsilons_that_use_the_total():
    designs = survey_plan(yes_no_questions(5), Fraction(2), 1_000).designs
    assert [design.drawn for design in designs] == [1, 2, 3, 4, 5]
    for design in designs:
        (epsilon,) = {item.epsilon for item in design.questions}
        assert 0 <= Fraction(2, design.drawn) - epsilon < Fraction(1, 1000)
        assert {item.responses for item in design.questions} == {200 * design.drawn}
        assert math.log(design.ratio) == pytest.approx(design.drawn * float(epsilon), abs=2e-3)


@each_case("sizes", [(1, 1, 1), (3, 1, 1, 2), (4, 1, 1)])
def test_no_other_division_of_the_total_has_a_larger_product_of_epsilons(sizes):
    """Divide the total in all ways on a grid: the largest parts of a draw may add up to 1."""
    steps = 12
    for drawn in range(1, len(sizes) + 1):
        parts = group_budgets(sizes, drawn)
        assert sum(sorted(parts, reverse=True)[:drawn]) == 1

        def log_product(parts):
            return sum(s * math.log(part / s) for s, part in zip(sizes, parts, strict=True))

        best = max(
            log_product([Fraction(part, steps) for part in division])
            for division in product(range(1, steps + 1), repeat=len(sizes))
            if sum(sorted(division)[-drawn:]) <= steps
        )
        assert log_product(parts) >= best - 1e-9, drawn
        assert log_product(parts) - best < 0.1, drawn


def test_margins_are_those_of_the_responses_to_each_question():
    design = survey_plan(questions(a=YES_NO, b=choice(4), c=YES_NO), Fraction(2), 9_000).design_for(
        1
    )
    z = normal_quantile(0.95)
    for item, k in zip(design.questions, (2, 4, 2), strict=True):
        r = math.e**2
        p, q = r / (r + k - 1), 1 / (r + k - 1)
        rates = [q + (p - q) * share for share in (0.5, 0.1)]
        half, tenth = (z * math.sqrt(rate * (1 - rate) / 3_000) / (p - q) for rate in rates)
        assert item.margin == pytest.approx(half, rel=0.01), item.question.id
        assert item.typical == pytest.approx(math.sqrt(half * tenth), rel=0.01), item.question.id
    mean = math.prod(item.typical for item in design.questions) ** (1 / 3)
    assert design.typical_margin == pytest.approx(mean)


def test_the_recommended_design_has_the_smallest_typical_margin():
    plan = survey_plan(yes_no_questions(8), Fraction(2), 2_000)
    margins = {design.drawn: design.typical_margin for design in plan.designs}
    assert plan.recommended.drawn == min(margins, key=margins.get) == 1
    assert margins[8] > 2 * margins[1]


def test_of_nearly_equal_designs_the_one_that_asks_most_is_recommended():
    plan = survey_plan(yes_no_questions(8), Fraction("3.9"), 2_000)
    one, two = plan.designs[:2]
    assert one.typical_margin < two.typical_margin < 1.03 * one.typical_margin
    assert plan.recommended is two
    assert two.answer_ratio < one.answer_ratio


def test_no_answer_gets_more_than_its_limit():
    limit = Fraction("1.2")
    listed = [question for question in MIXED if question.id in "abcf"]
    plan = survey_plan(listed, Fraction(3), 2_000, crossings=[("c", "f")], answer_limit=limit)
    for design in plan.designs:
        assert log_rounded_up(design.answer_ratio) <= limit, (design.drawn, design.groups)
    unlimited = survey_plan(listed, Fraction(3), 2_000).design_for(1)
    assert log_rounded_up(unlimited.answer_ratio) > 2.9


def test_crossed_questions_are_planned_apart_and_in_one_group():
    plan = survey_plan(yes_no_questions(8), Fraction(2), 2_000, crossings=[("q1", "q2")])
    apart = plan.design_for(1, 8)
    assert not apart.allows_declared
    assert apart.together == ()
    design = plan.recommended
    assert (design.drawn, len(design.groups), design.together) == (1, 7, (("q1", "q2"),))
    (crossing,) = design.declared
    assert (crossing.share, crossing.responses) == (Fraction(1, 7), 285)
    margins = [*(item.typical for item in design.questions), crossing.margin]
    assert design.typical_margin == pytest.approx(math.prod(margins) ** (1 / 9))


def test_a_joint_response_is_planned_as_publication_builds_it():
    """Two yes/no questions at total 1.6: ±5.4 becomes ±4.1, their cell ±8.1 becomes ±2.8."""
    pair = [("q1", "q2")]
    joint = survey_plan(yes_no_questions(2), Fraction("1.6"), 2_280, crossings=pair).recommended
    text = "\n".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "?"\nepsilon = "0.8"' for i in (1, 2)
    )
    start = 'slug = "s"\ntitle = "S"\nprefer_not_to_say = false\n'
    published = publish(f'{start}{text}\n[[together]]\nquestions = ["q1", "q2"]\njoint = true\n')
    for item, question in zip(joint.questions, published.questions, strict=True):
        assert (item.question.channel, item.question.joint) == (question.channel, question.joint)
    assert joint.ratio == published.ratio
    assert joint.questions[0].margin == pytest.approx(0.041, abs=0.001)
    channel = published.questions[0].joint.channel
    rate = channel.q + (channel.p - channel.q) / 4
    error = math.sqrt(rate * (1 - rate) / 2_280) / (channel.p - channel.q)
    assert joint.declared[0].margin == pytest.approx(normal_quantile(0.95) * error)
    (apart,) = (
        d for d in (survey_plan(yes_no_questions(2), Fraction("1.6"), 2_280).design_for(2),)
    )
    assert apart.questions[0].margin == pytest.approx(0.054, abs=0.001)
    assert apart.crossing("q1", "q2").margin > 2 * joint.declared[0].margin


def test_a_grid_of_yes_no_questions_is_planned_in_a_half_space_where_that_is_narrower():
    """Ten items at total 4: ±4.4 in one report, ±5.8 at best with sampled questions."""
    asked = yes_no_questions(10)
    ids = [question.id for question in asked]
    grid = survey_plan(asked, Fraction(4), 2_000, together=[ids]).recommended
    apart = survey_plan(asked, Fraction(4), 2_000).recommended
    assert log_rounded_up(grid.ratio) <= 4
    assert grid.typical_margin == pytest.approx(0.0440, abs=0.0001)
    assert apart.typical_margin == pytest.approx(0.0578, abs=0.0001)
    text = "\n".join(
        f'[[questions]]\nid = "{id_}"\ntype = "yes_no"\ntext = "?"\nepsilon = "0.4"' for id_ in ids
    )
    start = 'slug = "s"\ntitle = "S"\nprefer_not_to_say = false\n'
    declared = f'[[together]]\nquestions = {ids}\njoint = true\nmechanism = "half_space"\n'
    for item, question in zip(
        grid.questions, publish(f"{start}{text}\n{declared}").questions, strict=True
    ):
        assert (item.question.channel, item.question.joint) == (question.channel, question.joint)
    # Questions that will be crossed are not put into a half-space.
    crossed = survey_plan(asked, Fraction(4), 2_000, together=[ids], crossings=[("q1", "q2")])
    assert all(item.question.joint is None for item in crossed.recommended.questions)


@pytest.mark.parametrize(("ordinary", "epsilon"), [(8, 1), (8, 4), (3, 4), (20, 8), (12, 3)])
def test_a_multiple_choice_gets_the_mechanism_with_the_smallest_computed_variance(
    ordinary, epsilon
):
    options = [{"id": f"o{i}", "label": f"O{i}"} for i in range(ordinary)]
    form = {"type": "multiple_choice", "options": options, "prefer_not_to_say": False}
    design = question_design(question(**form), Fraction(epsilon), Caps(question=12), 1_000)
    variances = {}
    for name, build in multiple_choice.DESIGNS.items():
        with suppress(ChannelError):
            # "None of these" is added, and excludes the others.
            channel = build(ordinary, ordinary, 1, Fraction(epsilon))
            variances[name] = multiple_choice.variance(channel, ordinary, ordinary, 1)
    assert design.question.mechanism == min(variances, key=variances.__getitem__)


def test_the_share_of_people_who_are_asked_two_questions_is_that_of_all_draws():
    groups = groups_of(MIXED)
    for design in survey_plan(MIXED, Fraction("0.7"), 2_000).designs:
        draws = [set(chain(*draw)) for draw in combinations(groups, design.drawn)]
        for pair in (("a", "b"), ("a", "c"), ("c", "f")):
            share = Fraction(sum(set(pair) <= draw for draw in draws), len(draws))
            assert design.crossing(*pair).share == share, (design.drawn, pair)


def test_a_survey_with_a_joint_response_is_planned_anew():
    survey = load(surveys.JOINT, "joint.toml", Caps())
    listed = list(survey.questions)
    assert present_design(listed, survey.groups, 2, 1_000).ratio == survey.total_ratio
    apart = survey_plan(listed, Fraction(3), 1_000).design_for(1, len(listed))
    assert all(item.question.joint is None for item in apart.questions)
    assert log_rounded_up(apart.ratio) <= 3
    pair = [("smoked", "drank")]
    best = survey_plan(listed, Fraction(3), 1_000, crossings=pair).recommended
    assert best.together == (("smoked", "drank"),)
    assert best.questions[0].question.joint


def test_the_margin_of_a_cell_is_that_of_the_joint_estimate():
    """Enumerate every report of two independent questions, with shares of one half of option 0."""
    channels = grr(2, "3/4"), from_epsilon(3, 2)
    values = []
    reports = []
    for channel, shares in zip(channels, ([0.5, 0.5], [0.5, 0.25, 0.25]), strict=True):
        reports.append(np.array(shares) @ channel.matrix)
        indicator = np.eye(channel.k)[0]
        values.append((indicator - channel.q) / (channel.p - channel.q))
    joint, products = np.outer(*reports), np.outer(*values)
    variance = float((joint * products**2).sum() - (joint * products).sum() ** 2)
    separate = [float(r @ v**2 - (r @ v) ** 2) for r, v in zip(reports, values, strict=True)]
    margin = normal_quantile(0.95) * math.sqrt(variance / 500)
    assert cell_margin(*separate, 500) == pytest.approx(margin)
    assert cell_margin(*separate, 0) == math.inf


@each_case(("k", "epsilon", "gain"), [(10, "0.5", 1.38), (20, "1", 1.51), (50, "1", 2.24)])
def test_subset_selection_is_proposed_where_it_is_narrower(k, epsilon, gain):
    gains = mechanism_gains(question(**choice(k)), Fraction(epsilon))
    assert gains["best"] == pytest.approx(gain, abs=0.005)
    design = question_design(question(**choice(k)), Fraction(epsilon), Caps(), 1_000)
    assert (design.question.mechanism, design.gain) == ("best", gains["best"])
    assert design.question.channel.d > 1


def test_a_gain_of_less_than_five_per_cent_keeps_randomized_response():
    k, epsilon = 6, Fraction(1)
    gain = mechanism_gains(question(**choice(k)), epsilon)["best"]
    assert 1 < gain < 1.05
    assert (
        question_design(question(**choice(k)), epsilon, Caps(), 1_000).question.mechanism == "grr"
    )


@each_case(("epsilon", "mechanism", "gain"), [("1", "hybrid", 1), ("4", "optimal_piecewise", 1.1)])
def test_optimal_piecewise_is_proposed_for_means_where_it_is_narrower(epsilon, mechanism, gain):
    design = question_design(question(**MIXED_NUMBER), Fraction(epsilon), Caps(), 1_000)
    assert design.question.mechanism == mechanism
    assert design.gain == pytest.approx(gain, abs=0.005)
    make = hybrid if mechanism == "hybrid" else optimal_piecewise
    assert design.question.channel == make(13, epsilon, 1)


def test_a_named_mechanism_is_not_replaced():
    for form in (choice(20, mechanism="grr"), {**MIXED_NUMBER, "mechanism": "square_wave"}):
        design = question_design(question(**form), Fraction(1), Caps(), 1_000)
        assert design.question.mechanism == form["mechanism"]


MIXED_NUMBER = {"type": "number", "low": 0, "high": 12}


def test_a_channel_above_a_limit_gets_the_largest_epsilon_that_can_be_published():
    design = survey_plan(questions(a=YES_NO, b=YES_NO), Fraction(9), 1_000).design_for(1)
    # The truth probability of two options is at most .99.
    assert [float(item.epsilon) for item in design.questions] == [4.595, 4.595]
    assert all(item.question.channel.exact_p <= Fraction(99, 100) for item in design.questions)


def test_ranges_are_compared_with_a_histogram_as_the_estimator_computes_it():
    """Five ranges of 13 points are 2.7 to 3.2 times narrower than by square wave."""
    number = question(**MIXED_NUMBER)
    for epsilon in (1, 2, 3):
        comparison = compare_bins(number, Fraction(epsilon), 2_000)
        channel = square_wave(13, epsilon, 1)
        flat = np.append(np.full(13, 1 / 13), 0)
        counts = np.round(flat @ channel.matrix * 2_000_000)
        errors = histogram(counts, channel, [*range(13), None], 5).std_error
        margin = normal_quantile(0.95) * errors.max() * math.sqrt(1_000)
        assert comparison.histogram == pytest.approx(margin, rel=0.01), epsilon
        assert 2.7 <= comparison.gain <= 3.25, (epsilon, comparison.gain)


def test_the_present_design_has_the_privacy_of_the_survey_as_it_is():
    design = present_design(MIXED, groups_of(MIXED), 2, 1_000)
    assert design.ratio == Questions(MIXED, 2).ratio
    assert {item.responses for item in design.questions} == {400}


def test_wrong_requests_are_refused_by_name():
    asked = questions(a=YES_NO, b=YES_NO)
    for arguments, message in (
        ((Fraction(0), 100), "total epsilon 0 must be above 0 and at most 24 for 2 questions"),
        ((Fraction(1, 100_000), 100), "is too small: epsilon = 0 must be above 0"),
        ((Fraction(1), 0), "n = 0 must be from 1"),
    ):
        with pytest.raises(DesignError, match=message):
            survey_plan(asked, *arguments)
    for pair, message in ((("a", "z"), "z is not a question"), (("a", "a"), "a with itself")):
        with pytest.raises(DesignError, match=message):
            survey_plan(asked, Fraction(1), 100, crossings=[pair])
