"""Skip logic links questions: their reports jointly determine the protection of an answer."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import labels
from survey.settings import Caps


def prison(children: int) -> Definition:
    """Return a yes/no question with several follow-ups to "yes", each at T/L = 3."""
    parent = {"id": "prison", "type": "yes_no", "text": "Prison?", "truth_probability": "3/4"}
    child = {
        "type": "yes_no",
        "truth_probability": "1/2",
        "ask_if": {"question": "prison", "options": ["yes"]},
    }
    pages = [{"questions": [parent]}] + [
        {"questions": [{**child, "id": f"c{i}", "text": f"C{i}?"}]} for i in range(children)
    ]
    form = {
        "slug": "s", "title": "S", "pages": pages, "allow_skip_logic": True,
        "prefer_not_to_say": False,
    }  # fmt: skip
    return freeze(load(json.dumps(form).encode(), "s.json", Caps()), 1)


def test_the_label_of_a_question_includes_the_reports_of_dependent_questions():
    """Return the maximum of P(all reports | no) / P(all reports | yes)."""
    definition = prison(3)
    parent, *children = (question.channel.matrix for question in definition.questions)
    largest = Fraction(0)
    for reports in product(range(2), *(range(3) for _ in children)):
        # "No" makes every child "does not apply", its last truth.
        of_no = parent[1, reports[0]]
        of_yes = parent[0, reports[0]]
        for matrix, report in zip(children, reports[1:], strict=True):
            of_no *= matrix[2, report]
            of_yes *= min(matrix[0, report], matrix[1, report])
        largest = max(largest, Fraction(of_no / of_yes).limit_denominator(1000))
    figures = labels(definition)["prison"]
    assert largest == 3 * 2**3 == definition.linked_ratios["prison"]
    assert (figures.odds, figures.from50) == ("24", 96)


def test_unlinked_questions_are_labelled_separately():
    definition = prison(0)
    assert labels(definition)["prison"].odds == "3"
