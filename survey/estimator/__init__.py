"""What can be learned from reports: counts and a channel in, estimates out; pure."""

from survey.estimator.diagnostics import Disclosure, disclosure, reports_needed
from survey.estimator.proportions import Proportions, debias, proportions

__all__ = [
    "Disclosure",
    "Proportions",
    "debias",
    "disclosure",
    "proportions",
    "reports_needed",
]
