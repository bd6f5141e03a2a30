"""Computation of model-based shares from the released counts of links or periods."""

from __future__ import annotations

import numpy as np

from survey import estimator
from survey.errors import ChannelError, DesignError
from survey.estimator.small_groups.normal_model import MIN_SPARE_GROUPS
from survey.results.display_status import SUPPRESSED, decide_disclosures
from survey.results.groups import first_day
from survey.results.number_format import not_enough
from survey.results.small_groups.table import SmallGroupsResult
from survey.results.trend.table import TrendGroup, TrendResult

TOO_FEW = "Model-based estimates need at least {needed} groups with responses to this question."


def compute_small_groups(trend: TrendResult) -> SmallGroupsResult | None:
    """Estimate the shares of all groups in a comparison by one model; None if no model applies.

    A model applies to shares among all respondents, over links (a common share) or over time (a
    straight line). Versions have none, because they may randomize differently. Suppression depends
    on the channel and on the number of reports in all groups together.
    """
    question, request = trend.question, trend.request
    # The first row over links is the total of all groups.
    groups = trend.groups[1:] if request.over == "links" else trend.groups
    has_model = request.over != "versions" and request.part == "shares"
    if not groups or not has_model or question.kind.is_numeric or question.by_patterns:
        return None
    counts = np.array([group.counts for group in groups], dtype=np.int64)
    n_asked = [group.result.n_asked for group in groups]
    if not sum(n_asked):
        return None
    covariate = _days(groups) if request.over == "trend" else None
    try:
        shares = estimator.group_shares(
            counts, question.channel, covariate, n=n_asked, level=trend.options.level
        )
    except ChannelError:
        return None
    except DesignError:
        needed = MIN_SPARE_GROUPS + (1 if covariate is None else 2)
        return SmallGroupsResult(trend, groups, None, TOO_FEW.format(needed=needed))
    if decide_disclosures(question, sum(n_asked))["shares"] == SUPPRESSED:
        text = not_enough(trend.survey)
        return SmallGroupsResult(trend, groups, None, f"{text[0].upper()}{text[1:]}.")
    return SmallGroupsResult(trend, groups, shares)


def _days(groups: tuple[TrendGroup, ...]) -> list[float]:
    return [float(first_day(group.period).toordinal()) for group in groups]
