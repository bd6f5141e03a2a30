"""Questions whose answer is a day."""

from __future__ import annotations

from survey.questionnaire.kinds.base import Kind


class Date(Kind):
    """A day between two days, rounded on the device to every `step` days."""

    type = "date"
    is_numeric = True
    is_date = True
