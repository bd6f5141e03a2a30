"""Questions whose answer is a number."""

from __future__ import annotations

from survey.questionnaire.kinds.base import Kind


class Number(Kind):
    """A number between two bounds, rounded on the device to a grid."""

    type = "number"
    is_numeric = True
