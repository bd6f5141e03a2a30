"""The recommended design of a draft: the panel of the plan page, and the edits that apply it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from survey.errors import ChannelError, DesignError
from survey.estimator.planning.sample_size import rounded
from survey.mechanism.composition import format_epsilon, log_rounded_up
from survey.mechanism.exact_numbers import GRID, format_fraction
from survey.questionnaire.definition import drawn_together
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import DraftCheck, check_draft
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.form_messages import MECHANISM_NAMES
from survey.questionnaire.kinds import BaseQuestion
from survey.questionnaire.privacy_loss import (
    Bounds,
    Questions,
    odds_in_words,
    report_strength,
    strength,
)
from survey.research.builder.plan import DraftPlan
from survey.results.estimates.histogram import ranges
from survey.results.plan.compute import planned_margin, to_published
from survey.results.plan.question_design import BINS, MIN_GAIN, compare_bins, mechanism_gains
from survey.results.plan.sentences import USELESS_MARGIN, WIDE_MARGIN, Responses, is_imprecise
from survey.results.plan.survey_design import (
    EQUAL_FACTOR,
    SurveyDesign,
    SurveyPlan,
    present_design,
    survey_plan,
)


@dataclass(frozen=True)
class DesignRow:
    """The texts of a design in the table; `place` is its position, None for the present one.

    crossings  margin of a cell and responses of each declared cross-tab
    pair       responses to two questions of different groups, and the margin of a cell
    """

    place: int | None
    label: str
    responses: int
    answer: str
    report: str
    typical: str
    crossings: tuple[str, ...]
    pair: str
    is_recommended: bool


@dataclass(frozen=True)
class Margin:
    """A margin of error in points, and whether it is too wide to be useful."""

    text: str
    is_wide: bool

    @classmethod
    def of(cls, margin: float) -> Margin:
        """Format a margin, given as a share or as a fraction of the range."""
        return cls(_points(margin), not margin <= WIDE_MARGIN)


MarginRow = tuple[str, tuple[Margin, ...]]
"""The text of a question, and its margin in each column."""


@dataclass(frozen=True)
class Draw:
    """A number of groups of questions that each person is asked, and its effect in words.

    `strength` is the protection of a complete response, `factor` its odds factor, and `responses`
    the expected number of responses to each question. `is_largest_safe` marks the largest number
    that causes no warning; none is marked if even one question causes one.
    """

    n: int
    strength: str
    factor: str
    responses: int
    is_present: bool
    is_largest_safe: bool


@dataclass(frozen=True)
class DrawTable:
    """The numbers of groups that each person can be asked, with each question's margins."""

    n_groups: int
    draws: tuple[Draw, ...]
    margins: tuple[MarginRow, ...]


@dataclass(frozen=True)
class DesignPanel:
    """The texts of the plan page about designs; only `error` is set if there is no design.

    total     the total epsilon and its factor
    sentences how the recommended design compares with the present one
    one_report  what all free yes/no questions in one half-space would give, if that is narrower
    columns   the designs whose margins are shown question by question
    margins   of every question: its text, then the present margin and that of each design
    changes   of the recommended design: the text and the new settings of each question
    ranges    key and text of each number, and the effect of asking for ranges
    """

    error: str = ""
    total: str = ""
    sentences: tuple[str, ...] = ()
    one_report: str = ""
    crossings: tuple[str, ...] = ()
    rows: tuple[DesignRow, ...] = ()
    columns: tuple[str, ...] = ()
    margins: tuple[MarginRow, ...] = ()
    changes: tuple[tuple[str, str], ...] = ()
    ranges: tuple[tuple[int, str, str], ...] = ()
    recommended_place: int = 0
    can_apply: bool = False


def propose(draft_check: DraftCheck, planned: DraftPlan) -> tuple[SurveyPlan, SurveyDesign]:
    """Return the designs of a draft's questions without mistakes, and the present design.

    The total epsilon is the planned one, or that of the draft. Raises DesignError.
    """
    questions = [question for _, question in draft_check.published.values()]
    asked = draft_check.asked
    total = planned.total or _in_thousandths(log_rounded_up(asked.ratio))
    plan = survey_plan(
        questions,
        total,
        planned.n,
        together=drawn_together(questions, draft_check.together),
        crossings=planned.crossings,
        caps=draft_check.caps,
    )
    present = present_design(
        questions,
        asked.groups,
        min(asked.drawn, asked.n_groups),
        planned.n,
        planned.crossings,
    )
    return plan, present


def draw_table(draft_check: DraftCheck, planned: DraftPlan) -> DrawTable | None:
    """Return the numbers of questions that each person can be asked at the draft's privacy levels.

    The table omits numbers whose privacy loss exceeds the server's maximum, except the current
    number. Return None if there is no choice.
    """
    asked = draft_check.asked
    if asked.n_groups < 2:
        return None
    present = min(asked.drawn, asked.n_groups)
    largest_safe = draft_check.largest_safe_draw
    listed = {*range(1, LISTED_DRAWS + 1), present, largest_safe, asked.n_groups}
    limit = draft_check.caps.survey
    draws = []
    for n in sorted(listed & set(range(1, asked.n_groups + 1))):
        questions = asked.with_draw(n)
        if n != present and log_rounded_up(questions.ratio) > limit:
            continue
        responses = Responses(planned.n, questions.share_asked).to_question
        factor = odds_in_words(questions.ratio)
        strength = report_strength(questions)
        draws.append(Draw(n, strength, factor, responses, n == present, n == largest_safe))
    published = [to_published(question) for _, question in draft_check.published.values()]
    margins = tuple(
        (
            question.text,
            tuple(Margin.of(planned_margin(question, draw.responses)) for draw in draws),
        )
        for question in published
    )
    return DrawTable(asked.n_groups, tuple(draws), margins)


LISTED_DRAWS = 5
"""The table lists all numbers up to this one, then the current, largest safe and largest one."""


def design_panel(draft_check: DraftCheck, planned: DraftPlan, n_questions: int) -> DesignPanel:
    """Return the panel for a draft with this number of questions."""
    try:
        plan, present = propose(draft_check, planned)
        best = plan.recommended
    except DesignError as error:
        text = str(error)
        return DesignPanel(error=f"{text[:1].upper()}{text[1:]}.")
    place = plan.designs.index(best)
    return DesignPanel(
        total=_total(planned, present),
        sentences=tuple(_sentences(best, present, planned)),
        one_report=_one_report(plan),
        crossings=tuple(" × ".join(crossing.ids) for crossing in best.declared),
        rows=(
            _row(present, None, is_recommended=False),
            *(
                _row(design, i, is_recommended=i == place)
                for i, design in enumerate(plan.designs)
                if design.groups == best.groups
            ),
        ),
        columns=tuple(f"Ask {design.drawn}" for design in _series(plan)),
        margins=tuple(_margins([present, *_series(plan)])),
        changes=tuple(_changes(best, present)),
        ranges=tuple(_ranges(draft_check, planned)),
        recommended_place=place,
        can_apply=len(draft_check.questions) == n_questions,
    )


def apply_design(
    content: DraftContent, draft_check: DraftCheck, design: SurveyDesign
) -> DraftContent:
    """Return the draft with the mechanisms, epsilons and groups of a design."""
    levels: dict[int, tuple[str, str]] = {}
    for item in design.questions:
        key, question = draft_check.published[item.question.id]
        epsilon = item.epsilon or Fraction(0)
        own = question.kind.recommend_mechanism(question.answer_space, epsilon)
        is_own = question.mechanism is None and item.question.mechanism == own
        mechanism = "" if is_own else item.question.mechanism
        # The rows of a matrix have equal epsilons; the draft states their sum.
        n_rows = 1 + len(draft_check.rows.get(key, ()))
        levels[key] = (mechanism, format_fraction(epsilon * n_rows))
    drawn = design.drawn if design.drawn < len(design.groups) else 0
    return edits.with_groups(edits.with_epsilons(content, levels), design.declarations, drawn)


def better_mechanism(question: BaseQuestion) -> tuple[str, float]:
    """Return the mechanism with the narrowest interval of a choice, and how much it narrows it.

    ("", 1) if the present mechanism is as good, the question is about a number, or it is
    randomized jointly with others.
    """
    if question.kind.is_numeric or question.joint:
        return "", 1.0
    try:
        gains = mechanism_gains(question, _epsilon(question))
    except ChannelError:
        return "", 1.0
    best = max(gains, key=lambda name: gains[name])
    gain = gains[best] / gains.get(question.design, 1.0)
    return (best, gain) if gain > MIN_GAIN else ("", 1.0)


def mechanism_sentence(question: BaseQuestion) -> str:
    """Return how much a better mechanism narrows intervals; empty if there is none."""
    name, gain = better_mechanism(question)
    if not name:
        return ""
    return (
        f"With the mechanism “{MECHANISM_NAMES[name]}”, intervals would be narrower by a factor of "
        f"{gain:.2f} at the same epsilon."
    )


def with_better_mechanism(content: DraftContent, key: int, question: BaseQuestion) -> DraftContent:
    """Return the draft with the better mechanism of a question, at its present epsilon."""
    name, _ = better_mechanism(question)
    if not name:
        raise DesignError("no other mechanism is more precise")
    # The draft states the sum of the rows' equal epsilons.
    epsilon = _epsilon(question) * (len(content.question(key)["rows"]) if question.matrix else 1)
    return edits.with_epsilons(content, {key: (name, format_fraction(epsilon))})


RECOMMENDED_LEVELS = ("", "1.7")
"""The levels that leave no question weak, strongest first; "" is the standard level."""


def recommended_levels(
    content: DraftContent,
    draft_check: DraftCheck,
    planned: DraftPlan,
    keys: Collection[int] | None = None,
) -> dict[int, str]:
    """Return a better privacy level for each question that is weak or imprecise, by key.

    Without `keys`, consider all questions. Recommend the strongest of `RECOMMENDED_LEVELS` with a
    useful margin. If there is none, a weak question gets the standard level, and an imprecise
    question gets no recommendation.
    """
    levels: dict[int, str] = {}
    considered = draft_check.questions.keys() & (draft_check.questions if keys is None else keys)
    weak = considered & set(draft_check.weak_keys)
    remaining = weak | _imprecise(draft_check, planned, considered)
    for level in RECOMMENDED_LEVELS:
        if not remaining:
            break
        changed = edits.with_levels(content, levels | dict.fromkeys(remaining, level))
        changed_check = check_draft(changed, draft_check.caps)
        wide = _imprecise(changed_check, planned, remaining)
        precise = remaining & changed_check.questions.keys() - wide
        levels |= dict.fromkeys(precise, level)
        remaining = remaining - precise
    return levels | dict.fromkeys(remaining & weak, RECOMMENDED_LEVELS[0])


def _imprecise(draft_check: DraftCheck, planned: DraftPlan, keys: Collection[int]) -> set[int]:
    """Return the keys of questions whose margin is too wide at the planned number of responses."""
    n = Responses(planned.n, draft_check.asked.share_asked).to_question
    questions = draft_check.questions
    return {key for key in keys if key in questions and is_imprecise(questions[key], n)}


def level_remedy(levels: Mapping[int, str], key: int) -> str:
    """Return the text of the button that sets a question's recommended level; empty without one."""
    if key not in levels:
        return ""
    level = levels[key]
    name = strength(Fraction(math.exp(float(level)))) if level else "standard"
    return f"Use the {name} privacy level"


def ranges_sentence(question: BaseQuestion, responses: int) -> str:
    """Compare the margins of a number's histogram with those of asking for ranges."""
    if not question.kind.is_numeric:
        return ""
    try:
        comparison = compare_bins(question, _epsilon(question), responses)
    except ChannelError:
        return ""  # too few points for a square wave
    return (
        f"A histogram of {BINS} cells, randomized by square wave, would have margins of up to "
        f"{_points(comparison.histogram)} points. If you ask for one of {BINS} ranges instead, the "
        f"margins are {_points(comparison.bins)} points, narrower by a factor of "
        f"{comparison.gain:.1f}. The results then show no mean and no detail within a range."
    )


def with_ranges(content: DraftContent, key: int, question: BaseQuestion) -> DraftContent:
    """Return the draft with ranges instead of a number."""
    if not question.kind.is_numeric or question.grid is None or question.grid.points <= BINS:
        raise DesignError(
            f"only a number or date with more than {BINS} values can be divided into ranges"
        )
    labels = ranges(question.grid, BINS, is_date=question.kind.is_date)
    return edits.with_ranges(content, key, labels, format_fraction(_epsilon(question)))


def _epsilon(question: BaseQuestion) -> Fraction:
    """Return the epsilon that a question states, or that of its channel in thousandths."""
    return question.epsilon or _in_thousandths(question.channel.epsilon)


def _in_thousandths(epsilon: float) -> Fraction:
    return max(Fraction(math.floor(epsilon * GRID), GRID), Fraction(1, GRID))


def _series(plan: SurveyPlan) -> list[SurveyDesign]:
    """Return the designs with the groups of the recommended one."""
    return [design for design in plan.designs if design.groups == plan.recommended.groups]


def _total(planned: DraftPlan, present: SurveyDesign) -> str:
    if planned.total is None:
        return f"that of the present draft, a factor of {odds_in_words(present.ratio)}"
    factor = odds_in_words(Fraction(math.exp(planned.total)))
    return f"epsilon {format_fraction(planned.total)}, a factor of {factor}"


def _sentences(best: SurveyDesign, present: SurveyDesign, planned: DraftPlan) -> Iterator[str]:
    exceeds = planned.total is not None and log_rounded_up(present.ratio) > planned.total
    is_best = (
        present.allows_declared and present.typical_margin <= EQUAL_FACTOR * best.typical_margin
    )
    if is_best and not exceeds:
        yield "No other design with this privacy loss has clearly smaller margins than this one."
        return
    yield (
        f"Ask each person {_label(best)}: the typical margin becomes "
        f"{_points(best.typical_margin)} points instead of {_points(present.typical_margin)}."
        + (" The privacy loss of the present design exceeds the limit." if exceeds else "")
    )
    yield (
        f"A complete response changes the odds by a factor of at most {odds_in_words(best.ratio)} "
        f"(now {odds_in_words(present.ratio)}), one answer alone by at most "
        f"{odds_in_words(best.answer_ratio)} (now {odds_in_words(present.answer_ratio)})."
    )
    yield Bounds.of(best.ratio).examples
    for group in best.together:
        joint = next(
            (item.question.joint for item in best.questions if item.question.id in group), None
        )
        manner = ". Their answers are randomized jointly" if joint else ""
        yield f"Each person is asked all or none of: {', '.join(group)}{manner}."
        if joint and joint.mechanism == "half_space":
            yield (
                "These questions could then be cross-tabulated with others, but not with each "
                "other. Declare the pairs that you need above."
            )
    pair = math.floor(best.n * best.separate_share)
    if len(best.groups) > 1:
        yield (
            f"About {pair:,} responses would include any two questions from different groups."
            if pair
            else "Questions from different groups could not be cross-tabulated."
        )


def _one_report(plan: SurveyPlan) -> str:
    design = plan.in_one_report
    if design is None:
        return ""
    return (
        f"If you do not need to cross the {len(plan.items)} yes/no questions "
        f"{', '.join(plan.items)} with each other, declare that they belong together. "
        "Randomized in one half-space, they would make the typical margin "
        f"{_points(design.typical_margin)} points."
    )


def _label(design: SurveyDesign) -> str:
    if design.drawn == len(design.groups):
        return f"all {len(design.questions)} questions"
    separate = len(design.groups) == len(design.questions)
    return f"{design.drawn} of {len(design.groups)} {'' if separate else 'groups of '}questions"


def _row(design: SurveyDesign, place: int | None, *, is_recommended: bool) -> DesignRow:
    questions = Questions(
        tuple(item.question for item in design.questions), design.drawn, together=design.groups
    )
    answer = strength(design.answer_ratio)
    pair = math.floor(design.n * design.separate_share)
    return DesignRow(
        place=place,
        label=_label(design),
        responses=design.questions[0].responses,
        answer=_protection(answer, design.answer_ratio),
        report=_protection(report_strength(questions), design.ratio),
        typical=_points(design.typical_margin),
        crossings=tuple(
            f"{_points(crossing.margin)} ({crossing.responses:,})" if crossing.share else "none"
            for crossing in design.declared
        ),
        pair=f"{pair:,}" if pair else "none",
        is_recommended=is_recommended,
    )


def _protection(grade: str, ratio: Fraction) -> str:
    return f"{grade}, factor\N{NO-BREAK SPACE}{odds_in_words(ratio)}"


def _margins(designs: Sequence[SurveyDesign]) -> Iterator[MarginRow]:
    for i, item in enumerate(designs[0].questions):
        cells = [design.questions[i] for design in designs]
        yield item.question.text, tuple(Margin.of(cell.margin) for cell in cells)


def _changes(best: SurveyDesign, present: SurveyDesign) -> Iterator[tuple[str, str]]:
    for new, old in zip(best.questions, present.questions, strict=True):
        text = (
            f"epsilon {format_fraction(new.epsilon or Fraction(0))} (now "
            f"{format_epsilon(old.question.channel.epsilon)})"
        )
        if new.question.joint:
            text += ", randomized jointly"
        if new.question.mechanism != old.question.mechanism:
            text += f", mechanism “{MECHANISM_NAMES[new.question.mechanism]}”"
            if new.gain > MIN_GAIN:
                text += f": intervals narrower by a factor of {new.gain:.2f}"
        yield new.question.text, text


def _ranges(draft_check: DraftCheck, planned: DraftPlan) -> Iterator[tuple[int, str, str]]:
    responses = max(math.floor(planned.n * draft_check.asked.share_asked), 1)
    for key, question in draft_check.questions.items():
        with suppress(DesignError):
            if sentence := ranges_sentence(question, responses):
                yield key, question.text, sentence


def _points(margin: float) -> str:
    if not math.isfinite(margin) or margin > USELESS_MARGIN:
        return "impossible"
    return f"±{rounded(100 * margin, decimals=1, digits=1)}"
