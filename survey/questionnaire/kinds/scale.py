"""Questions whose answer is one of several options in order."""

from __future__ import annotations

from survey.questionnaire.kinds.base import Kind


class Scale(Kind):
    """One of several options in order, each with a score."""

    type = "scale"
    is_ordered = True
