"""A regression in the words of a paper, each with the caveat that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from survey.results.regression.table import LINK, NOT_DETERMINED, Regressed, RegressionRow
from survey.results.wording import p_value

MOST_SENTENCES = 4


def to_write(found: Regressed) -> list[str]:
    """Sentences as they can stand in a paper, the clearest first; none of what is hidden."""
    told = [row for row in found.rows if row.predictor_id and row.p_value is not None]
    if found.fit is None or not found.fit.converged or not told:
        return []
    clearest = sorted(told, key=lambda row: row.p_value or 0.0)[:MOST_SENTENCES]
    return [_model(found), *(_coefficient(found, row) for row in clearest)]


def caveats(found: Regressed) -> list[str]:
    """What must be said beside the figures."""
    said = [
        "The likelihood is that of the reports through the randomization of each question; people "
        "are never sorted by what they reported, which would draw every odds ratio towards 1."
    ]
    if found.fit is not None and not found.fit.converged:
        said.append(
            "The search for the most likely coefficients did not end: do not use these figures. "
            "Take fewer predictors."
        )
    if any(row.flag == NOT_DETERMINED for row in found.rows):
        said.append(
            "“Not determined” are coefficients that grow without end: the reports fit best with a "
            "share of 0, or with a predictor that separates the answers. More reports or fewer "
            "predictors help."
        )
    if found.shown == "caution":
        said.append("The intervals are wide: read the odds ratios as a first impression.")
    said.append(
        "An odds ratio is about people who differ in one predictor and are alike in the others "
        "here; it is no effect unless chance decided who is which."
    )
    return said


def by_answer(found: Regressed) -> list[list[RegressionRow]]:
    """The coefficients answer by answer."""
    size = len(found.terms)
    rows = found.rows
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def by_predictor(rows: Sequence[RegressionRow]) -> list[tuple[str, list[RegressionRow]]]:
    """The coefficients of one answer, predictor by predictor."""
    return [(name, list(some)) for name, some in groupby(rows, key=lambda row: row.predictor_id)]


def number(value: float | None) -> str:
    """An odds ratio to three significant digits.

    >>> number(2.3456), number(0.0123), number(1234.5), number(None)
    ('2.35', '0.0123', '1,230', '')
    """
    if value is None:
        return ""
    if value >= 1e6:
        return "above 1,000,000"
    if value < 1e-6:
        return "below 0.000001"
    return f"{float(f'{value:.3g}'):,.10g}"


def predictor_label(row: RegressionRow) -> str:
    """What a coefficient is about, without its reference."""
    if not row.predictor_id:
        return "Intercept"
    link = "link " if row.predictor_id == LINK else ""
    return f"{link}{row.predictor_option_label}"


def predictor_text(found: Regressed, name: str) -> str:
    """The predictor itself, as people read it."""
    if name == LINK:
        return "Link"
    questions = {question.id: question.text for question in found.survey.definition.questions}
    return questions.get(name, "")


def _model(found: Regressed) -> str:
    names = dict.fromkeys(row.predictor_id for row in found.rows if row.predictor_id)
    parts = ["the link" if name == LINK else f"“{predictor_text(found, name)}”" for name in names]
    outcomes = len({row.option_id for row in found.rows})
    kind = "logistic" if outcomes == 1 else "multinomial logistic"
    return (
        f"“{found.question.text}” was regressed on {' and '.join(parts)} ({kind} regression by "
        f"maximum likelihood through the randomization; {found.n:,} reports, each randomized on "
        "the respondent’s device; standard errors from the observed information)."
    )


def _coefficient(found: Regressed, row: RegressionRow) -> str:
    clear = (row.p_value or 0.0) < 1 - row.conf_level
    told = "" if clear else "not shown to differ: "
    return (
        f"The odds of “{row.option_label}” against “{row.against_option_label}” were {told}an "
        f"estimated {number(row.odds_ratio)} times as high for {_people(found, row)} "
        f"({100 * row.conf_level:g}% confidence interval {number(row.conf_low)} to "
        f"{number(row.conf_high)}; {p_value(row.p_value or 0.0)})."
    )


def _people(found: Regressed, row: RegressionRow) -> str:
    those, others = row.predictor_option_label, row.reference_option_label
    if row.predictor_id == LINK:
        return f"those who came by the link {those} as for {others}"
    return (
        f"those who answered “{those}” to “{predictor_text(found, row.predictor_id)}” as for those "
        f"who answered “{others}”"
    )
