"""Questions whose answer is a set of options."""

from __future__ import annotations

from survey.questionnaire.kinds.base import Kind


class MultipleChoice(Kind):
    """Any number of options up to a limit, or none of them."""

    type = "multiple_choice"
    is_multiple = True
