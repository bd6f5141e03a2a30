"""Questions that belong together: drawn whole, and randomized jointly."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from pydantic import TypeAdapter

from survey.collect.simulation import randomized_codes, simulate_respondents
from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition
from survey.questionnaire.drafts import edits
from survey.questionnaire.drafts.check import check_draft
from survey.questionnaire.drafts.conversion import draft_from
from survey.questionnaire.drafts.draft import DraftContent
from survey.questionnaire.drafts.edits import QuestionSheet
from survey.questionnaire.kinds import Question
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.loading import load, parse, source_of
from survey.questionnaire.privacy_loss import Questions, report_strength
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.cases import each_case
from tests.surveys import ITEMS, JOINT, publish

YES_NO = '[[questions]]\nid = "{0}"\ntype = "yes_no"\ntext = "{0}?"\n'


def survey_of(*ids: str, declared: str, start: str = "", more: str = "") -> str:
    """Return a survey of yes/no questions at p = 3/4."""
    questions = "".join(map(YES_NO.format, ids))
    return (
        f'slug = "s"\ntitle = "S"\ntruth_probability = "3/4"\nprefer_not_to_say = false\n{start}\n'
        f"{questions}{more}{declared}"
    )


def together(*ids: str, joint: bool = False) -> str:
    return f"[[together]]\nquestions = {list(ids)}\n" + "joint = true\n" * joint


def half_space(*ids: str) -> str:
    return together(*ids, joint=True) + 'mechanism = "half_space"\n'


def test_questions_that_belong_together_are_drawn_together_with_the_same_frequency():
    definition = publish(
        survey_of(*"abcd", declared=together("d", "a"), start="questions_per_person = 1", more="")
    )
    assert definition.groups == (("a", "d"), ("b",), ("c",))
    rows = list(simulate_respondents(definition, 3_000, {}, np.random.default_rng(1)))
    asked = Counter("".join(i for i, answer in zip("abcd", row, strict=True) if answer is not None)
                    for row in rows)  # fmt: skip
    assert set(asked) == {"ad", "b", "c"}
    # Six standard deviations of a share of 1/3.
    assert all(abs(n / 3_000 - 1 / 3) < 0.052 for n in asked.values())


def test_drawing_questions_together_reveals_nothing_about_each_other():
    definition = publish(survey_of(*"abc", declared=together("a", "c")))
    assert definition.linked_ratios == dict.fromkeys("abc", Fraction(3))
    assert b"together" not in definition.canonical
    assert b"joint" not in definition.canonical
    sampled = publish(
        survey_of(*"abc", declared=together("a", "c"), start="questions_per_person = 1")
    )
    assert sampled.ratio == 9
    assert sampled.linked_ratios == dict.fromkeys("abc", Fraction(3))
    assert report_strength(Questions.of(sampled)) == "moderate"


def test_a_joint_response_spends_exactly_the_epsilons_of_its_questions():
    definition = publish(survey_of(*"abc", declared=together("c", "a", joint=True)))
    a, b, c = definition.questions
    assert a.joint == c.joint
    assert a.joint
    assert a.joint.questions == ("a", "c")
    assert b.joint is None
    assert a.joint.channel.ratio == 9
    assert definition.ratio == 27
    # p of each is (T + L)/(T + 3L), above the 3/4 that it states.
    assert a.channel.exact_p == Fraction(5, 6)
    assert definition.linked_ratios == {"a": Fraction(9), "b": Fraction(3), "c": Fraction(9)}
    assert Questions.of(definition).ratio == Questions.of(load_survey(definition)).ratio == 27
    totals = ledger(definition)
    assert totals.odds == "27"
    (line,) = (line for line in lines(totals) if line.strip().startswith("a:"))
    assert "epsilon 1.61 (with c, randomized jointly with it: epsilon 2.198)" in line


def test_a_joint_response_of_one_survey_leaves_the_same_questions_of_another_alone():
    apart = publish(survey_of(*"ab", declared=""))
    publish(survey_of(*"ab", declared=together("a", "b", joint=True)))
    for definition in (apart, publish(survey_of(*"ab", declared=""))):
        assert [question.joint for question in definition.questions] == [None, None]


def load_survey(definition: Definition):
    return check(source_of(definition), Caps())


@each_case(
    "source",
    [
        JOINT.decode(),
        ITEMS.decode(),
        survey_of(*"abcd", declared=half_space("b", "d")),
        survey_of(*"abc", declared=together("a", "b", "c", joint=True)),
        survey_of(*"abcd", declared=together("b", "d"), start="questions_per_person = 2"),
    ],
)
def test_a_published_declaration_reads_back_as_it_was_written(source):
    definition = publish(source)
    assert freeze(load_survey(definition), 1).canonical == definition.canonical


def test_the_simulation_draws_exactly_the_joint_channel():
    definition = publish(JOINT)
    smoked, drank = (definition.questions[place] for place in (0, 2))
    channel = smoked.joint.channel
    for truth in itertools.product(range(2), range(3)):
        answers = [truth[0], None, truth[1], None, None, None]
        counts = Counter(
            tuple(randomized_codes(definition.questions, answers, lambda n, u=u: u)[place]
                  for place in (0, 2))
            for u in range(channel.total)
        )  # fmt: skip
        assert counts == {
            pair: channel.T if pair == truth else channel.L
            for pair in itertools.product(range(2), range(3))
        }
    # The parts are the margins of that table.
    assert smoked.channel.exact_p == Fraction(channel.T + 2 * channel.L, channel.total)
    assert drank.channel.exact_p == Fraction(channel.T + channel.L, channel.total)


def test_questions_in_a_half_space_spend_exactly_their_epsilons():
    definition = publish(survey_of(*"abcde", declared=half_space("e", "a", "c", "b")))
    a, b, _, d, _ = definition.questions
    assert a.joint == b.joint
    assert a.joint
    assert a.joint.questions == ("a", "b", "c", "e")
    assert d.joint is None
    assert a.joint.channel.ratio == 3**4
    assert definition.ratio == 3**5
    assert definition.linked_ratios["c"] == 3**4
    # The stored report has one byte per question, as without the declaration.
    assert {question.code_bytes for question in definition.questions} == {1}


def test_the_simulation_draws_exactly_the_half_space_and_its_parts():
    """Run every sequence of draws for every combination of answers.

    Each vector with at least t right bits has weight a, and any other one b, with a/b = e^epsilon.
    """
    text = survey_of(*"abc", declared=half_space(*"abc")).replace('"3/4"', '"3/5"')
    definition = publish(text)
    channel = definition.questions[0].joint.channel
    below = [channel.near + channel.far, channel.near_count, channel.far_count]
    a, b = Fraction(27), Fraction(8)
    assert channel.ratio == a / b
    total = a * channel.near_count + b * channel.far_count
    for truth in itertools.product(range(2), repeat=3):
        counts = Counter()
        for draws in itertools.product(*map(range, below)):
            sequence = iter(draws)
            codes = randomized_codes(definition.questions, truth, lambda _, it=sequence: next(it))
            counts[tuple(codes)] += 1
        shares = {codes: Fraction(n, math.prod(below)) for codes, n in counts.items()}
        for codes in itertools.product(range(2), repeat=3):
            right = sum(map(operator.eq, codes, truth))
            assert shares[codes] == (a if right >= channel.agreements else b) / total
        # The part of a question does not depend on the other answers.
        for place, question in enumerate(definition.questions):
            kept = sum(share for codes, share in shares.items() if codes[place] == truth[place])
            assert kept == question.channel.exact_p


MULTIPLE = """[[questions]]
id = "m"
type = "multiple_choice"
text = "M?"
epsilon = 1
options = [{id = "x", label = "X"}, {id = "y", label = "Y"}]
"""
DEPENDENT = """[[pages]]
[[pages.questions]]
id = "a"
type = "yes_no"
text = "A?"
[[pages]]
[[pages.questions]]
id = "b"
type = "yes_no"
text = "B?"
ask_if = { question = "a", options = ["yes"] }
"""
LONG = """[[questions]]
id = "{0}"
type = "single_choice"
text = "{0}?"
truth_probability = "1/2"
options = [{1}]
"""
OPTIONS = ", ".join(f'{{id = "o{i}", label = "O{i}"}}' for i in range(17))

WRONG = {
    "an unknown question": (
        survey_of(*"ab", declared=together("a", "x")),
        ("together 1, questions", '"x" is not a question; available: a, b'),
    ),
    "a question twice": (
        survey_of(*"ab", declared=together("a", "a")),
        ("together 1, questions", "lists a question twice"),
    ),
    "four jointly": (
        survey_of(*"abcd", declared=together(*"abcd", joint=True)),
        (
            "together 1, questions",
            "has 4 questions; at most 3 can be randomized jointly, or up to 20 yes/no questions "
            'with mechanism = "half_space"',
        ),
    ),
    "21 in a half-space": (
        survey_of(*"abcdefghijklmnopqrstu", declared=half_space(*"abcdefghijklmnopqrstu")),
        ("together 1, questions", "has 21 questions; at most 20 can be randomized jointly"),
    ),
    "three options in a half-space": (
        survey_of("a", more=YES_NO.format("b") + "prefer_not_to_say = true\n",
                  declared=half_space("a", "b")),
        (
            "together 1, questions",
            '"b" has the options yes, no, prefer_not_to_say; in a half-space each question has 2',
        ),
    ),
    "a half-space without joint": (
        survey_of(*"ab", declared=half_space(*"ab").replace("joint = true\n", "")),
        ("together 1, mechanism", "needs joint = true"),
    ),
    "too high a truth probability in a half-space": (
        survey_of(
            "a",
            more=YES_NO.format("b") + 'truth_probability = "0.99"\n',
            declared=half_space("a", "b"),
        ),
        ("together 1, questions", '"a" would have a truth probability of 0.993; at most 0.99 is '
         "allowed"),
    ),
    "two joint responses of one question": (
        survey_of(*"abc", declared=together(*"ab", joint=True) + together(*"bc", joint=True)),
        ("together 2, questions", '"b" is already randomized jointly with other questions'),
    ),
    "several answers": (
        survey_of("a", more=MULTIPLE, declared=together("a", "m", joint=True)),
        (
            "together 1, questions",
            '"m" cannot be randomized jointly: it must have one answer from a list and '
            'mechanism = "grr"',
        ),
    ),
    "a condition": (
        'slug = "s"\ntitle = "S"\nallow_skip_logic = true\ntruth_probability = "3/4"\n'
        + DEPENDENT
        + together("a", "b", joint=True),
        (
            "together 1, questions",
            '"a" cannot be randomized jointly, because it depends on another question or another '
            "depends on it",
        ),
    ),
    "too many combinations": (
        survey_of(
            more=LONG.format("a", OPTIONS) + LONG.format("b", OPTIONS),
            declared=together("a", "b", joint=True),
        ),
        (
            "together 1, questions",
            "289 combinations of options are more than 256: separate reports are more precise",
        ),
    ),
    "too high a truth probability": (
        survey_of(
            "a",
            start="",
            more=YES_NO.format("b") + 'truth_probability = "0.99"\n',
            declared=together("a", "b", joint=True),
        ),
        ("together 1, questions", '"a" would have a truth probability of 0.993; at most 0.99 is '
         "allowed"),
    ),
}  # fmt: skip


@each_case(("source", "mistake"), WRONG.values())
def test_a_wrong_declaration_is_refused_with_its_place(source, mistake):
    with pytest.raises(DefinitionError) as refused:
        load(source.encode(), "s.toml", Caps(question=5))
    assert refused.value.mistakes == [mistake]


# Drafts


def draft_of(source: str) -> DraftContent:
    return draft_from(parse(source.encode(), "s.toml"))


PAIR = survey_of(*"abc", declared=together("a", "b", joint=True))


def linked(content: DraftContent, key: int, other: str, *, joint: bool) -> DraftContent:
    """Return the draft after its question form was sent with another companion."""
    sheet = QuestionSheet(key)
    values = {**sheet.values(content), "together_with": other, "joint": joint}
    return sheet.apply(content, values)


def test_a_draft_follows_a_renamed_question_and_forgets_a_removed_one():
    content = draft_of(PAIR)
    a, b, _ = content.questions
    assert content.companion("b") == ("a", True)
    values = {**QuestionSheet(a["key"]).values(content), "id": "smoked"}
    renamed = QuestionSheet(a["key"]).apply(content, values)
    assert renamed.companion("b") == ("smoked", True)
    assert check_draft(renamed, Caps()).survey.questions
    alone = edits.remove_question(content, a["key"])
    assert alone.companion("b") == ("", False)
    pages = edits.add_page(content)
    moved = edits.move_question(edits.move_question(pages, b["key"], 1), b["key"], 1)
    assert [len(page.questions) for page in moved.pages] == [2, 1]
    assert moved.companion("b") == ("a", True)
    copied, key = edits.duplicate_question(content, b["key"])
    assert copied.companion(copied.question(key)["id"]) == ("", False)


def test_the_question_form_changes_what_a_question_belongs_to():
    content = draft_of(PAIR)
    _, b, c = content.questions
    three = linked(content, c["key"], "b", joint=True)
    (joint,) = {question.joint for question in check_draft(three, Caps()).survey.questions}
    assert joint.questions == ("a", "b", "c")
    apart = check_draft(linked(content, c["key"], "b", joint=False), Caps()).survey
    assert apart.groups == [["a", "b", "c"]]
    assert [question.joint is None for question in apart.questions] == [False, False, True]
    for joint in (True, False):
        assert linked(three, b["key"], "", joint=joint).companion("a") == ("c", True)
    separate = linked(content, b["key"], "a", joint=False)
    assert separate.survey["together"] == ({"questions": ["a", "b"], "joint": False},)
    assert linked(separate, b["key"], "a", joint=False) == separate


def test_a_mistake_of_a_declaration_belongs_to_the_question_that_makes_it():
    content = draft_of(survey_of(*"ab", more=MULTIPLE, declared=together("a", "b")))
    *_, multiple = content.questions
    (mistake,) = check_draft(linked(content, multiple["key"], "a", joint=True), Caps()).mistakes
    assert (mistake.field, mistake.question) == ("together_with", multiple["key"])
    assert mistake.text.startswith('"m" cannot be randomized jointly')


def test_an_automatic_number_of_questions_counts_those_that_belong_together_once():
    content = draft_of(survey_of(*"abcd", declared=together("a", "b")))
    content = replace(content, survey={**content.survey, "questions_per_person": "auto"})
    found = check_draft(content, Caps())
    # Two of three groups, one of them a pair, would have the factor 27.
    assert (found.asked.n_groups, found.asked.drawn, found.ratio) == (3, 1, 9)
    assert found.survey.groups == [["a", "b"], ["c"], ["d"]]


def test_a_question_that_is_validated_again_has_the_joint_response_of_its_survey():
    """Questions are cached by their text, which leaves out the joint response."""
    together_, apart = (
        next(iter(load(text.encode(), "s.toml", Caps()).questions))
        for text in (PAIR, survey_of(*"abc", declared=""))
    )
    assert repr(together_) == repr(apart)
    again = [TypeAdapter(Question).validate_python(each) for each in (together_, apart)]
    assert [question.joint is None for question in again] == [False, True]
