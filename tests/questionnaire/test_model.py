"""Skip logic links questions: their reports jointly determine the protection of an answer."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import Bounds, labels, ledger, lines, topic_bounds
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


SURVEY_WITH_TOPICS = """
slug = "s"
title = "S"
truth_probability = "3/4"
prefer_not_to_say = false
allow_skip_logic = true
{sampling}

[[pages]]
[[pages.questions]]
id = "a"
type = "yes_no"
text = "A?"
topic = "Work"
[[pages.questions]]
id = "b"
type = "yes_no"
text = "B?"
topic = "Work"
[[pages.questions]]
id = "c"
type = "yes_no"
text = "C?"

[[pages]]
[[pages.questions]]
id = "d"
type = "yes_no"
text = "D?"
truth_probability = "1/2"
ask_if = {{ question = "a", options = ["yes"] }}
"""


def with_topics(sampling: str = "") -> Definition:
    text = SURVEY_WITH_TOPICS.format(sampling=sampling)
    return freeze(load(text.encode(), "s.toml", Caps()), 1)


def test_a_topic_counts_all_reports_that_depend_on_its_questions():
    """P(reports | answers) changes at most by this factor between any two answers about work."""
    definition = with_topics()
    a, b, _, d = (question.channel.matrix for question in definition.questions)
    answers = [(0, y, z) for y in range(2) for z in range(2)] + [(1, y, 2) for y in range(2)]
    likelihoods = [
        [
            Fraction(a[x, i]).limit_denominator(99)
            * Fraction(b[y, j]).limit_denominator(99)
            * Fraction(d[z, k]).limit_denominator(99)
            for i, j, k in product(range(2), range(2), range(3))
        ]
        for x, y, z in answers
    ]
    largest = max(p / q for of_p in likelihoods for of_q in likelihoods
                  for p, q in zip(of_p, of_q, strict=True))  # fmt: skip
    assert definition.ratio_about(definition.topics["Work"]) == largest == 18
    assert topic_bounds(definition) == {"Work": Bounds("18", 67, 95)}


def test_a_topic_of_sampled_questions_counts_the_most_that_one_respondent_is_asked():
    # Groups: "a" with "d" (6), "b" (3), "c" (3). One of them is drawn, or two.
    factors = [
        topic_bounds(with_topics(f"questions_per_person = {n}"))["Work"].odds for n in (1, 2)
    ]
    assert factors == ["6", "18"]


def test_the_check_lists_the_whole_report_first_then_topics_then_questions():
    printed = lines(ledger(with_topics()))
    assert printed[0].startswith("  complete response (4 questions per respondent): epsilon 3.989")
    assert "odds factor at most 54; a suspicion of 10% becomes at most 86%" in printed[0]
    assert printed[1].startswith('  topic "Work" (a, b): epsilon 2.891; odds factor at most 18:')
    assert printed[2] == "  each question alone:"
    assert printed[3].startswith("    a: ")
