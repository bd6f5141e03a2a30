"""Questions whose answer is one option: yes or no, or a list of options."""

from __future__ import annotations

from survey.questionnaire.kinds.base import Kind


class YesNo(Kind):
    """Yes or no."""

    type = "yes_no"
    is_binary = True


class SingleChoice(Kind):
    """One of several options without an order."""

    type = "single_choice"
