"""Skip logic links questions: their reports jointly determine the protection of an answer."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod
from random import Random

from survey.mechanism.composition import log_rounded_up
from survey.questionnaire.canonical import freeze
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.loading import load
from survey.questionnaire.privacy_loss import (
    Bounds,
    Questions,
    labels,
    publication_warnings,
    report_heading,
    report_strength,
    topic_bounds,
)
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


def test_a_topic_counts_questions_that_are_drawn_together_without_skip_logic():
    texts = (f'text = "{text}?"\ntopic = "T"' for text in ("A", "Why", "Where", "When"))
    definition = freeze(load(definition_of(*texts).encode(), "s.toml", Caps()), 1)
    drawn = replace(definition, groups=(("q0", "q1"), ("q2", "q3")), drawn=1)
    assert drawn.topic_ratios == {"T": 9}


def test_the_check_lists_the_whole_report_first_then_topics_then_questions():
    printed = lines(ledger(with_topics()))
    assert printed[0].startswith("  complete response (4 questions per respondent): epsilon 3.989")
    assert "odds factor at most 54; a suspicion of 10% becomes at most 86%" in printed[0]
    assert printed[1].startswith('  topic "Work" (a, b): epsilon 2.891; odds factor at most 18:')
    assert printed[2] == "  each question alone:"
    assert printed[3].startswith("    a: ")


def definition_of(*texts: str, privacy: str = 'truth_probability = "3/4"', more: str = "") -> str:
    source = f'slug = "s"\ntitle = "S"\nprefer_not_to_say = false\n{privacy}\n{more}\n'
    return source + "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\n{text}\n' for i, text in enumerate(texts)
    )


def questions(*texts: str, **options: str) -> Questions:
    source = definition_of(*texts, **options)
    return Questions.of(freeze(load(source.encode(), "s.toml", Caps()), 1))


ASLEEP = ('text = "Did you fall asleep at work?"', 'text = "Did you ever fall asleep at work?"')


def test_nearly_equal_questions_are_named_until_they_share_a_topic():
    (warning,) = publication_warnings(questions(*ASLEEP), Caps())
    assert "“Did you fall asleep at work?” and “Did you ever fall asleep at work?”" in warning
    assert "by a factor of at most 9. Give both the same topic" in warning
    shared = questions(*(f'{text}\ntopic = "Sleep"' for text in ASLEEP))
    assert publication_warnings(shared, Caps()) == []
    different = questions(*(f'{text}\ntopic = "{i}"' for i, text in enumerate(ASLEEP)))
    assert publication_warnings(different, Caps()) == [warning]
    one_asked = questions(*ASLEEP, more="questions_per_person = 1")
    assert "by a factor of at most 3. Give" in publication_warnings(one_asked, Caps())[0]


def test_a_battery_of_nearly_equal_questions_causes_one_warning_with_the_factor_of_all():
    battery = [f'text = "How satisfied are you with your {item}?"' for item in ["pay", "boss"]]
    battery += [f'text = "How satisfied are you with your {item}?"' for item in ("job", "desk")]
    other = 'text = "Do you have children?"'
    for n in (2, 3, 4):
        asked = questions(*battery[:n], other, more="questions_per_person = 2")
        (warning,) = publication_warnings(asked, Caps())
        assert "change the odds by a factor of at most 9. Give" in warning
        named = warning.partition(" Together")[0]
        assert named.endswith({2: "are nearly equal.", 3: "your job?”.", 4: " and 1 more."}[n])
        assert named.count("“") == min(n, 3)


def test_a_common_topic_does_not_hide_an_equal_question_of_another_survey():
    """Respondents see no figure of both surveys, whatever their topics."""
    source = definition_of('text = "Asleep?"\ntopic = "Sleep"')
    survey = load(source.encode(), "s.toml", Caps())
    (warning,) = publication_warnings(Questions.of(survey), Caps(), [freeze(survey, 1)])
    assert "“Asleep?” is nearly equal to “Asleep?” in the survey “S”" in warning
    assert "by a factor of at most 9. Ask different people, or remove the question." in warning


def test_linked_questions_that_are_weak_together_cause_one_warning_about_their_conditions():
    (warning,) = publication_warnings(Questions.of(prison(2)), Caps())
    assert (
        "the question “Prison?” together with the questions linked to it by skip logic changes"
        in warning
    )
    assert f"by a factor of at most {prison(2).ratio}." in warning
    assert "Remove the conditions, or choose a smaller epsilon." in warning


def test_a_warning_counts_groups_of_linked_questions_instead_of_questions():
    warning, *_ = publication_warnings(Questions.of(with_topics()), Caps())
    assert "Ask each person 1 of the 3 groups of questions, chosen at random" in warning


def test_at_most_ten_warnings_about_nearly_equal_questions_are_shown():
    survey = load(definition_of('text = "Asleep?"').encode(), "s.toml", Caps())
    for n, last in ((10, "remove the question."), (11, "1 more warning"), (12, "2 more warnings")):
        warnings = publication_warnings(Questions.of(survey), Caps(), [freeze(survey, 1)] * n)
        assert len(warnings) == min(n, 11)
        assert last in warnings[-1]


def test_a_topic_whose_questions_are_weak_together_causes_a_warning_and_a_weak_report():
    two = [f'text = "{text}?"\ntopic = "Nights"' for text in ("Asleep", "Hurt")]
    asked = questions(*two, privacy='truth_probability = "0.78"')
    assert report_strength(asked) == "weak"
    assert report_heading(asked) == "Privacy loss of one complete response: ε 2.532 (weak)"
    (warning,) = publication_warnings(asked, Caps())
    assert "about the topic “Nights” together change the odds by a factor of at most 13." in warning
    assert "Ask each person 1 question, chosen at random, or choose a smaller" in warning
    assert report_strength(asked.with_draw(1)) == "moderate"
    assert publication_warnings(asked.with_draw(1), Caps()) == []
    without = questions(*(text.replace("topic", "help") for text in two),
                        privacy='truth_probability = "0.78"')  # fmt: skip
    assert report_strength(without) == "moderate"


def test_many_equal_questions_of_another_survey_are_named_once_with_their_common_factor():
    texts = [f'text = "{text}?"' for text in ("Asleep", "Hurt", "Bullied", "Robbed")]
    asked = questions(*texts, more="questions_per_person = 2")
    for n in (3, 4):
        other = freeze(load(definition_of(*texts[:n]).encode(), "s.toml", Caps()), 1)
        warnings = publication_warnings(asked, Caps(), [other])
        assert len(warnings) == {3: 3, 4: 1}[n]
    assert (
        "4 questions, such as “Asleep?”, are nearly equal to questions in the survey “S”"
        in warnings[0]
    )
    # Two of four questions at 3 each in this survey, all four in the other one.
    assert "by a factor of at most 729." in warnings[0]


def test_nearly_equal_questions_of_other_surveys_are_found_in_any_common_language():
    """Own languages differ; the comparison reads the translations of both."""

    def survey(slug: str, language: str, text: str) -> Survey:
        source = (
            f'slug = "{slug}"\ntitle = "{slug}"\nlanguage = "{language}"\nepsilon = 1\n'
            f'[[questions]]\nid = "{slug}"\ntype = "yes_no"\ntext = {text}\n'
        )
        return load(source.encode(), "s.toml", Caps())

    english = survey(
        "a", "en", '{ en = "Did you fall asleep at work?", es = "¿Se durmió en el trabajo?" }'
    )
    spanish = survey("b", "es", '"¿Se durmió usted en el trabajo?"')
    arabic = survey("c", "ar", '{ ar = "هل نمت؟", en = "Did you ever fall asleep at work?" }')
    surveys = {"en": english, "es": spanish, "ar": arabic}
    definitions = {language: freeze(survey, 1) for language, survey in surveys.items()}
    pairs = {
        (first, second)
        for first, second in permutations(surveys, 2)
        if publication_warnings(Questions.of(surveys[first]), Caps(), [definitions[second]])
    }
    assert pairs == {("en", "es"), ("es", "en"), ("en", "ar"), ("ar", "en")}


def test_researchers_are_warned_exactly_above_a_factor_of_20_and_a_question_above_9():
    at_20 = [
        questions('text = "A?"', privacy=f"truth_probability = '{p}'") for p in ("9/10", "91/100")
    ]
    warnings = [publication_warnings(asked, Caps()) for asked in at_20]
    assert warnings[0] == []
    assert len(warnings[1]) == 1
    assert "“A?” alone changes the odds by a factor of at most 11." in warnings[1][0]
    two = 'text = "A?"\ntruth_probability = "5/6"', 'text = "Why?"\ntruth_probability = "{}"'
    for p, n_warnings in (("4/5", 0), ("401/500", 1)):  # 5 · 4 = 20, and a little more
        asked = questions(two[0], two[1].format(p), privacy="")
        warnings = publication_warnings(asked, Caps())
        assert len(warnings) == n_warnings, p
        assert all("at most 21. Above 20, the survey warns" in text for text in warnings)
    assert log_rounded_up(Fraction(20)) <= Caps().warning < log_rounded_up(Fraction(20)) + 0.001


def test_a_server_can_only_lower_the_threshold():
    asked = questions('text = "A?"')
    assert "above 1," in publication_warnings(asked, Caps(warning=Decimal(1)))[0]
    weak = questions('text = "A?"', 'text = "Why?"', 'text = "Where?"')
    assert publication_warnings(weak, Caps(warning=Decimal(20))) != []


def test_the_proposed_number_is_the_largest_whose_every_draw_stays_at_a_factor_of_20():
    rng = Random(20)
    for _ in range(30):
        factors = [Fraction(rng.choice((2, 3, 4, 5, 9))) for _ in range(rng.randrange(3, 7))]
        asked = questions(*(f'text = "{i}?"\ntruth_probability = "{r / (r + 1)}"'
                            for i, r in enumerate(factors)), privacy="")  # fmt: skip
        good = [
            n
            for n in range(1, len(factors) + 1)
            if all(prod(drawn) <= 20 for drawn in combinations(factors, n))
        ]
        proposed = asked.proposed_draw(Caps())
        assert (proposed or len(factors)) == max(good), factors
        # A server that warns earlier proposes fewer.
        assert (asked.proposed_draw(Caps(warning=Decimal("1.2"))) or 0) <= max(good)
    standard = questions(*(f'text = "{c}?"' for c in "ABCDE"))
    (warning,) = publication_warnings(standard, Caps())
    assert "Ask each person 2 questions, chosen at random: total epsilon 2.198" in warning
    drawn = questions(*(f'text = "{c}?"' for c in "ABCDE"), more="questions_per_person = 2")
    assert (drawn.proposed_draw(Caps()), publication_warnings(drawn, Caps())) == (None, [])
    hopeless = questions('text = "A?"', 'text = "Why?"', privacy='truth_probability = "99/100"')
    assert hopeless.proposed_draw(Caps()) == 0
    assert (
        "Choose a smaller epsilon for the questions that reveal most."
        in publication_warnings(hopeless, Caps())[0]
    )
