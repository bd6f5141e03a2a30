"""The part of `survey plan` that designs a whole survey: tables for the terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import click

from survey.cli import configured_settings
from survey.errors import ChannelError, DesignError
from survey.estimator.planning.sample_size import checked_n, rounded
from survey.mechanism.exact_numbers import exact_fraction, format_fraction
from survey.questionnaire.definition import MAX_QUESTIONS, drawn_together
from survey.questionnaire.kinds import BaseQuestion
from survey.questionnaire.loading import load_file
from survey.questionnaire.privacy_loss import WEAK_QUESTION_ABOVE, odds_in_words
from survey.results.plan.chart import survey_design_chart, write_chart
from survey.results.plan.compute import LEVEL, mean_margin
from survey.results.plan.question_design import BINS, QuestionDesign, compare_bins
from survey.results.plan.survey_design import (
    Pair,
    SurveyDesign,
    SurveyPlan,
    limit_of,
    present_design,
    survey_plan,
    yes_no_questions,
)

COLUMNS = 8
"""Maximum number of designs whose margins are printed question by question."""

LARGEST_MARGIN = 0.5
"""Larger margins say nothing about a share."""

MAX_ID = 30
"""Characters of an id in a table."""


def design_survey(
    questions: str | None,
    total: str | None,
    n: int | None,
    cross: Sequence[str],
    answer_factor: float | None,
    chart: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Print the designs of a survey and the recommended one, and draw their margins."""
    if not questions or not total or n is None:
        raise DesignError("give --questions, --total and --n to plan a whole survey")
    checked_n(n)
    caps = configured_settings().caps
    pairs = [_pair(text) for text in cross]
    survey = None if questions.isdecimal() else load_file(Path(questions), caps)
    listed = list(survey.questions) if survey else _yes_no(int(questions))
    try:
        total_epsilon = exact_fraction(total, "total")
    except ChannelError as error:
        raise DesignError(str(error)) from None
    declared = [group.questions for group in survey.together] if survey else []
    result = survey_plan(
        listed,
        total_epsilon,
        n,
        together=drawn_together(listed, declared),
        crossings=pairs,
        caps=caps,
        answer_limit=None if answer_factor is None else _answer_limit(answer_factor),
    )
    present = present_design(listed, survey.groups, survey.drawn, n, pairs) if survey else None
    lines = [
        *_designs_table(result, present, total),
        "",
        *_margins_table(result),
        "",
        *_recommendation(result.recommended),
        *_one_report(result),
        *_bins_lines(listed, result.recommended),
        "",
        *_definition_lines(result.recommended),
    ]
    if chart is not None:
        write_chart(survey_design_chart(result, present), chart)
    if as_json:
        designs = [_design_as_json(design) for design in result.designs]
        recommended = _design_as_json(result.recommended)
        click.echo(json.dumps({"recommended": recommended, "designs": designs}, indent=2))
    else:
        click.echo("\n".join(lines))


def _design_as_json(design: SurveyDesign) -> dict[str, object]:
    """Return a design for programs; null stands for a margin that does not exist."""

    def margin(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "questions_per_person": design.drawn,
        "groups": design.groups,
        "together": design.together,
        "report_factor": float(design.ratio),
        "answer_factor": float(design.answer_ratio),
        "typical_margin": margin(design.typical_margin),
        "cell_margin": margin(design.cell_margin),
        "crossings": [
            {"questions": pair.ids, "responses": pair.responses, "margin": margin(pair.margin)}
            for pair in design.declared
        ],
        "questions": [
            {
                "id": item.question.id,
                "mechanism": item.question.mechanism,
                "epsilon": None if item.epsilon is None else float(item.epsilon),
                "responses": item.responses,
                "margin": margin(item.margin),
            }
            for item in design.questions
        ],
    }


def _answer_limit(factor: float) -> Fraction:
    """Return the epsilon of the maximum factor of an answer, or raise DesignError."""
    if not factor > 1 or math.isinf(factor):
        raise DesignError(f"--answer-factor {factor:g} must be a number above 1")
    return limit_of(factor)


def _yes_no(number: int) -> list[BaseQuestion]:
    if not 1 <= number <= MAX_QUESTIONS:
        raise DesignError(
            f"--questions {number} must be a number from 1 to {MAX_QUESTIONS}, or a file"
        )
    return yes_no_questions(number)


def _pair(text: str) -> Pair:
    first, _, second = text.partition(",")
    if not second or "," in second:
        raise DesignError(
            f"--cross {text} must be the ids of two questions and a comma, such as injured,support"
        )
    return first.strip(), second.strip()


def _designs_table(result: SurveyPlan, present: SurveyDesign | None, total: str) -> list[str]:
    design = result.designs[0]
    pairs = design.declared
    series = {len(design.groups) for design in result.designs}
    heads = [f"{first} x {second}" for first, second in (pair.ids for pair in pairs)]
    lines = [
        f"Designs of {len(design.questions)} questions for {design.n:,} respondents, total epsilon "
        f"at most {total}.",
        f"Margins at level {LEVEL:g}: points of a share near 50%, or per cent of a number's range.",
        "Typical: the geometric mean for shares of 50% and 10%, including declared cross-tabs.",
        "Pair: responses to two questions from different groups, and the typical margin of a cell.",
        *(["Below the line, cross-tabulated questions form one group."] if len(series) > 1 else []),
        "",
        f"{'asked':>12}{'responses':>11}{'one answer':>12}{'response':>10}{'typical':>9}"
        f"{'pair':>9}{'cell':>8}" + "".join(f"  {head:>14}" for head in heads),
    ]
    if present is not None:
        lines.append(_design_row(present, "now "))
    for number, designs in groupby(result.designs, lambda design: len(design.groups)):
        lines += ["-" * len(lines[-1])] if number != len(design.groups) else []
        lines += [_design_row(row, "* " if row is result.recommended else "") for row in designs]
    return lines


def _design_row(design: SurveyDesign, mark: str) -> str:
    factors = (f"x{odds_in_words(ratio)}" for ratio in (design.answer_ratio, design.ratio))
    one_answer, report = factors
    asked = f"{mark}{design.drawn} of {len(design.groups)}"
    pair = math.floor(design.n * design.separate_share)
    crossings = "".join(
        f"  {f'{crossing.responses:,} {_points(crossing.margin)}':>14}"
        for crossing in design.declared
    )
    return (
        f"{asked:>12}{design.questions[0].responses:>11,}{one_answer:>12}{report:>10}"
        f"{_points(design.typical_margin):>9}{pair:>9,}{_points(design.cell_margin):>8}{crossings}"
    )


def _margins_table(result: SurveyPlan) -> list[str]:
    """Format the margin of every question in the designs nearest to the recommended one."""
    groups = len(result.recommended.groups)
    series = [design for design in result.designs if len(design.groups) == groups]
    place = series.index(result.recommended)
    first = max(min(place - COLUMNS // 2, len(series) - COLUMNS), 0)
    designs = series[first : first + COLUMNS]
    rows = [
        (item.question.id, [_points(design.questions[i].margin) for design in designs])
        for i, item in enumerate(designs[0].questions)
    ]
    merged = [
        (_merged_name([id_ for id_, _ in alike]), cells)
        for cells, alike in ((cells, list(rows)) for cells, rows in groupby(rows, lambda r: r[1]))
    ]
    heads = "".join(f"{f'ask {design.drawn}':>9}" for design in designs)
    return [
        f"{'Margins':{MAX_ID}}{heads}",
        *(f"{name:{MAX_ID}}" + "".join(f"{cell:>9}" for cell in cells) for name, cells in merged),
    ]


def _recommendation(design: SurveyDesign) -> list[str]:
    rows = [(item.question.id, _describe(item)) for item in design.questions]
    merged = [
        (_merged_name([id_ for id_, _ in alike]), text)
        for text, alike in ((text, list(rows)) for text, rows in groupby(rows, lambda row: row[1]))
    ]
    everything = design.drawn == len(design.groups)
    what = "groups of questions" if len(design.groups) < len(design.questions) else "questions"
    head = "all questions" if everything else f"{design.drawn} of {len(design.groups)} {what}"
    return [
        f"Recommended (*): ask each person {head}.",
        *(f"  Asked together or not at all: {', '.join(group)}." for group in design.together),
        *(
            ["  Questions from different groups cannot be cross-tabulated."]
            if not design.separate_share and len(design.groups) > 1
            else []
        ),
        *(f"  {name:{MAX_ID}}{text}" for name, text in merged),
        *_weak_answer_lines(design),
    ]


def _definition_lines(design: SurveyDesign) -> list[str]:
    """Return the lines of TOML that state a design in a definition; comments name their places."""
    stated: dict[str, list[str]] = {}
    for item in design.questions:
        name, n_rows = design.written_place(item.question.id)
        # A matrix states the sum of its rows' equal epsilons.
        epsilon = format_fraction(Fraction(item.epsilon or 0) * n_rows)
        stated[name] = [
            f'mechanism = "{item.question.mechanism}"',
            f"epsilon = {json.dumps(epsilon) if '/' in epsilon else epsilon}",
        ]
    lines = [
        "To use this design, write these lines into the definition. They replace its own",
        "mechanisms, privacy parameters and groups.",
        "",
    ]
    if design.drawn < len(design.groups):
        lines += ["# before the first [[pages]]", f"questions_per_person = {design.drawn}", ""]
    for settings, names in groupby(stated, stated.__getitem__):
        ids = ", ".join(names)
        lines += [f"# in the question{'s' * (', ' in ids)} {ids}", *settings, ""]
    for group, mechanism in design.declarations:
        lines += ["# at the end", "[[together]]", f"questions = {json.dumps(group)}"]
        lines += ["joint = true"] if mechanism else []
        lines += [f'mechanism = "{mechanism}"'] if mechanism == "half_space" else []
        lines.append("")
    return lines[:-1]


def _weak_answer_lines(design: SurveyDesign) -> list[str]:
    """Warn of a design whose answers publication and the privacy label will call weak."""
    if design.answer_ratio <= WEAK_QUESTION_ABOVE:
        return []
    return [
        "  Weak protection: one answer changes the odds by up to "
        f"{odds_in_words(design.answer_ratio)}. To stay at {WEAK_QUESTION_ABOVE} or less, add",
        f"    --answer-factor {WEAK_QUESTION_ABOVE}",
    ]


def _one_report(plan: SurveyPlan) -> list[str]:
    """Say what all free yes/no questions in one half-space would give, if that is narrower."""
    design = plan.in_one_report
    if design is None:
        return []
    return [
        f"In one half-space, {_merged_name(list(plan.items))} would make the typical margin "
        f"{_points(design.typical_margin)}: declare",
        '  [[together]] with joint = true and mechanism = "half_space", unless you need to cross '
        "them with each other.",
    ]


def _describe(item: QuestionDesign) -> str:
    epsilon = "" if item.epsilon is None else f", epsilon {float(item.epsilon):g}"
    gain = f", intervals narrower by a factor of {item.gain:.2f}" if item.gain > 1 else ""
    joint = item.question.joint
    mechanism = joint.mechanism if joint else item.question.mechanism
    ranks = ""
    if item.question.kind.is_ranking:
        margin = rounded(mean_margin(item.question, item.responses), decimals=1, digits=2)
        ranks = f", mean ranks ±{margin}"
    return f"{mechanism}{epsilon}{', randomized jointly' if joint else ''}{gain}{ranks}"


def _bins_lines(questions: Sequence[BaseQuestion], design: SurveyDesign) -> list[str]:
    """Compare the margins of each number's histogram with those of asking for ranges."""
    lines = []
    for question, item in zip(questions, design.questions, strict=True):
        if not item.is_mean or item.epsilon is None:
            continue
        try:
            comparison = compare_bins(question, Fraction(item.epsilon), item.responses)
        except ChannelError:
            continue  # too few points for a square wave
        lines += [
            f"  {question.id}: a histogram of {BINS} cells, by square wave, has margins of up to "
            f"{_points(comparison.histogram)};",
            f"    with {BINS} ranges instead, {_points(comparison.bins)} (narrower by a factor of "
            f"{comparison.gain:.1f}), but no mean",
        ]
    return lines


def _merged_name(ids: list[str]) -> str:
    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    return f"{ids[0][: MAX_ID - len(more) - 2]}{more}"


def _points(margin: float) -> str:
    if not math.isfinite(margin):
        return "-"
    if margin > LARGEST_MARGIN:
        return f">{100 * LARGEST_MARGIN:.0f}"
    return f"±{rounded(100 * margin, decimals=1, digits=1)}"
