"""What can be learned from reports: counts and a channel in, estimates out; pure."""

from survey.estimator.diagnostics import Disclosure, disclosure, reports_needed, rounded_up
from survey.estimator.means import Mean, mean
from survey.estimator.proportions import debias, proportions, subset_shares
from survey.estimator.shares import Proportions
from survey.estimator.table_shares import no_answer_shares

__all__ = [
    "Disclosure",
    "Mean",
    "Proportions",
    "debias",
    "disclosure",
    "mean",
    "no_answer_shares",
    "proportions",
    "reports_needed",
    "rounded_up",
    "subset_shares",
]
