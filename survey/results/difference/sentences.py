"""A difference of two groups in the words of a paper, each with the caveat that belongs to it."""

from __future__ import annotations

from survey.estimator import Independence
from survey.results.crosstab.compute import place_of
from survey.results.difference.table import Compared, DifferenceRow, is_number
from survey.results.groups import ANSWER, VERSION, Group
from survey.results.wording import Amounts, amounts, p_value, percent, points
from survey.store import PublishedSurvey


def to_write(found: Compared) -> list[str]:
    """Sentences as they can stand in a paper; none of what is hidden."""
    sentences = []
    shares = [row for row in found.share_rows if row.p_value is not None]
    if shares:
        sentences.append(_share(found, min(shares, key=lambda row: row.p_value or 0.0)))
    if found.test is not None:
        sentences.append(_whole(found, found.test))
    sentences += [_mean(found, row) for row in found.mean_rows if row.p_value is not None]
    return sentences


def caveats(found: Compared) -> list[str]:
    """What must be said beside the figures."""
    said = [_KINDS[found.groups[0].kind]]
    rows = [row for row in found.share_rows if row.p_value is not None]
    if len(rows) > 2:
        said.append(
            f"Each interval and p-value is of one answer alone. Of {len(rows)} answers one may "
            f"differ by chance: a p below {0.05 / len(rows):.3f} holds for all at once."
        )
    if "caution" in (found.shown, found.means_shown):
        said.append("The intervals are wide: read the differences as a first impression.")
    if found.test is not None and found.test.small_expected:
        said.append("Few reports are expected in some cells, so Pearson’s test is doubtful.")
    said.append("People of one group may answer less openly than those of the other.")
    return said


_KINDS = {
    ANSWER: "Who is in which group is known through random answers alone. Both groups are "
    "estimated from all reports at once (joint inversion); counting the reports of those who "
    "reported an answer would be biased.",
    VERSION: "The versions must have reached different people, and alike: who took part in both "
    "is counted twice, and nobody can tell.",
    "link": "The links must have reached different people. Unless chance decided who was given "
    "which link, a difference is not yet an effect.",
}


def people_of(group: Group, survey: PublishedSurvey) -> str:
    """A group as a sentence names it."""
    if group.kind == ANSWER:
        text = survey.definition.questions[place_of(survey, group.of)].text
        return f"those who answered “{group.label}” to “{text}”"
    if group.kind == VERSION:
        return f"those asked in {group.label}"
    return f"those who came by the {group.label}"


def _named(found: Compared) -> tuple[str, str]:
    first, second = found.groups
    return people_of(first, found.survey), people_of(second, found.survey)


def _share(found: Compared, row: DifferenceRow) -> str:
    first, second = _named(found)
    return (
        f"An estimated {percent(row.estimate_a)} of {first} and {percent(row.estimate_b)} of "
        f"{second} answered “{row.option_label}” to “{found.question.text}”: a difference of "
        f"{points(row.estimate)} percentage points ({100 * row.conf_level:g}% confidence interval "
        f"{points(row.conf_low)} to {points(row.conf_high)}; {p_value(row.p_value or 0.0)}; "
        f"{_reports(found)}, each randomized on the respondent’s device, "
        f"{'debiased by joint inversion' if found.by_answer else 'debiased'})."
    )


def _whole(found: Compared, test: Independence) -> str:
    differ = test.p_value < 1 - found.wanted.level
    first, second = _named(found)
    told = "differed" if differ else "were not shown to differ"
    return (
        f"The answers to “{found.question.text}” {told} between {first} and {second} (Pearson’s "
        f"test of the randomized reports, χ²({test.df}) = {test.statistic:.1f}, "
        f"{p_value(test.p_value)})."
    )


def _mean(found: Compared, row: DifferenceRow) -> str:
    first, second = _named(found)
    written = amounts(found.question, "mean")
    a, b, apart = (float(x or 0.0) for x in (row.estimate_a, row.estimate_b, row.estimate))
    return (
        f"The estimated mean of “{found.question.text}” was {written.text(a)} of {first} and "
        f"{written.text(b)} of {second}: a difference of {mean_points(found, apart)} "
        f"({100 * row.conf_level:g}% confidence interval {mean_points(found, row.conf_low)} to "
        f"{mean_points(found, row.conf_high)}; {p_value(row.p_value or 0.0)}; {_reports(found)}, "
        "each randomized on the respondent’s device, debiased)."
    )


def measured(found: Compared) -> str:
    """What the figures are, and in which unit they are subtracted."""
    if not is_number(found.question):
        return "Estimated shares, and A minus B in percentage points"
    written = amounts(found.question, "mean")
    unit = "days" if written.is_date else written.unit
    return "Estimated means, and A minus B" + (f" in {unit}" if unit else "")


def mean_points(found: Compared, value: float | None) -> str:
    """A difference of means in the unit of the question; of dates in days."""
    if value is None:
        return ""
    written = amounts(found.question, "mean")
    apart = Amounts(0, "days") if written.is_date else written
    return apart.text(value)


def _reports(found: Compared) -> str:
    if found.by_answer:
        return f"{found.n[0]:,} reports"
    return f"{found.n[0]:,} and {found.n[1]:,} reports"
