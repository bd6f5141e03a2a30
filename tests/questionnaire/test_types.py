"""Question types in definitions: options, channels, error messages and suggestions."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest

from survey.errors import ChannelError, DefinitionError
from survey.estimator.numbers.mean import DESIGNS as NUMBER_DESIGNS
from survey.mechanism import BitVector, SubsetSelection, WeightTable
from survey.questionnaire.canonical import freeze, read_definition
from survey.questionnaire.definition import Definition
from survey.questionnaire.designs import DESIGNS, PRIVACY
from survey.questionnaire.drafts.conversion import definition_from, draft_from
from survey.questionnaire.drafts.form_messages import form_message
from survey.questionnaire.kinds import KINDS
from survey.questionnaire.ledger import ledger, lines
from survey.questionnaire.loading import load, source_of
from survey.questionnaire.validation import check
from survey.settings import Caps
from tests.cases import each_case
from tests.surveys import EVERY_DESIGN

OPTIONS = [{"id": name, "label": name.upper()} for name in "abcd"]


def question(**fields: object) -> dict[str, object]:
    return {"id": "q", "type": "single_choice", "text": "Q?", **fields}


def survey_bytes(*questions: dict[str, object], **fields: object) -> bytes:
    return json.dumps(
        {"slug": "s", "title": "S", "pages": [{"questions": [q]} for q in questions], **fields}
    ).encode()


def published(*questions: dict[str, object], **fields: object) -> Definition:
    return freeze(load(survey_bytes(*questions, **fields), "s.json", Caps()), 1)


def mistakes(*questions: dict[str, object], **fields: object) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as refused:
        published(*questions, **fields)
    return refused.value.mistakes


def test_a_definition_of_every_type_reads_back_as_it_was_frozen():
    definition = freeze(load(EVERY_DESIGN, "every.toml", Caps()), 1)
    assert read_definition(definition.canonical) == definition
    assert {q.type for q in definition.questions} == set(KINDS)


def test_prefer_not_to_say_and_does_not_apply_are_inside_the_randomizer_of_every_type():
    forms = {
        "yes_no": {},
        "single_choice": {"options": OPTIONS},
        "scale": {"low": 1, "high": 5},
        "multiple_choice": {"options": OPTIONS},
        "number": {"low": 0, "high": 10},
        "date": {"low": "2020-01-01", "high": "2020-02-01"},
    }
    for kind, fields in forms.items():
        (frozen,) = published(
            question(type=kind, does_not_apply=True, epsilon=1, **fields)
        ).questions
        assert [o.id for o in frozen.options[-2:]] == [
            "does_not_apply",
            "prefer_not_to_say",
        ], kind
        match frozen.channel:
            case BitVector() as bits:
                assert (bits.m, bits.alone) == (7, 3)
            case WeightTable() as table:
                assert table.no_answers == 2
            case SubsetSelection() as choice:
                assert choice.k == len(frozen.options)


def test_none_of_these_is_an_option_of_every_multiple_choice():
    plain, labelled = published(
        question(type="multiple_choice", options=OPTIONS, epsilon=1, prefer_not_to_say=False),
        question(
            id="r", type="multiple_choice", options=OPTIONS, epsilon=1, none_of_these="Nothing"
        ),
    ).questions
    assert plain.options[-1].label == "None of these"
    assert plain.alone == 1
    assert [option.label for option in labelled.options[-2:]] == ["Nothing", "Prefer not to say"]


def test_a_limit_of_ticks_makes_answers_of_fewer_bits_and_a_smaller_epsilon():
    unlimited, limited = published(
        question(type="multiple_choice", options=OPTIONS, truth_probability=0.6),
        question(
            id="r", type="multiple_choice", options=OPTIONS, truth_probability=0.6, max_ticks=1
        ),
    ).questions
    assert (unlimited.channel.ratio, limited.channel.ratio) == (
        Fraction(3, 2) ** 5,
        Fraction(3, 2) ** 2,
    )


def test_multiple_choice_uses_and_names_the_design_of_the_smallest_variance():
    (low,) = published(question(type="multiple_choice", options=OPTIONS, epsilon=1)).questions
    (high,) = published(question(type="multiple_choice", options=OPTIONS, epsilon=4)).questions
    assert (low.mechanism, high.mechanism) == ("sampled_options", "subsets")


@each_case(
    ("high", "epsilon", "mechanism"),
    [(10, "0.61", "one_bit"), (10, 2, "hybrid"), (1, 2, "one_bit"), (999, 4, "hybrid")],
)
def test_a_number_uses_and_names_the_design_of_the_smallest_worst_case(high, epsilon, mechanism):
    (number,) = published(question(type="number", low=0, high=high, epsilon=epsilon)).questions
    assert number.mechanism == mechanism
    assert number.channel == NUMBER_DESIGNS[mechanism](high + 1, epsilon, 1)


def test_a_number_that_names_its_mechanism_keeps_it():
    for name in NUMBER_DESIGNS:
        form = question(type="number", low=0, high=1, epsilon=2, mechanism=name)
        assert published(form).questions[0].mechanism == name


def test_best_uses_larger_reported_sets_for_more_options():
    options = [{"id": f"o{i}", "label": f"O{i}"} for i in range(20)]
    (choice,) = published(question(options=options, mechanism="best", epsilon=1)).questions
    assert choice.channel.d == 6


def test_the_classical_designs_have_their_own_parameters_and_inherit_no_other_privacy():
    coins, cards, die, unrelated = published(
        question(type="yes_no", mechanism="two_coins", parameters={"truth": "1/2", "yes": "1/2"}),
        question(id="r", type="yes_no", mechanism="warner", parameters={"p": "3/4"}),
        question(
            id="s",
            options=OPTIONS[:3],
            mechanism="forced_response",
            parameters={"truth": "1/2", "forced": ["1/2", "1/4", "1/4"]},
        ),
        question(
            id="t",
            type="yes_no",
            mechanism="unrelated_question",
            parameters={"asked": "1/2", "prevalence": "1/12"},
        ),
        prefer_not_to_say=False,
        epsilon=0.1,
    ).questions
    assert coins.channel.matrix.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert coins.channel.ratio == cards.channel.ratio == 3
    assert die.channel.ratio == 5
    assert unrelated.channel.ratio == 13


def test_gaussian_noise_uses_the_unit_of_the_answers():
    tens, ones = (
        published(
            question(
                type="number",
                low=0,
                high=10 * step,
                step=step,
                mechanism="gaussian",
                parameters={"sigma": 8 * step},
            )
        ).questions[0]
        for step in (10, 1)
    )
    assert tens.channel == ones.channel


def test_a_grid_has_integer_parameters_and_exact_values():
    (number,) = published(
        question(type="number", low="-1.5", high=2, step="0.25", unit="m", epsilon=1)
    ).questions
    assert number.grid.to_json() == {
        "low": -150, "step": 25, "points": 15, "decimals": 2, "unit": "m"
    }  # fmt: skip
    assert number.grid.values[:2] == (-1.5, -1.25)
    (day,) = published(
        question(type="date", low="1970-01-11", high="1970-01-25", step=7, epsilon=1)
    ).questions
    assert day.grid.values == (10, 17, 24)


def test_a_scale_of_numbers_has_labelled_ends_and_its_scores():
    (scale,) = published(
        question(type="scale", low=-1, high=1, low_label="bad", high_label="good", epsilon=1)
    ).questions
    assert [option.label for option in scale.options[:3]] == ["-1 (bad)", "0", "1 (good)"]
    assert scale.grid.values == (-1, 0, 1)


def test_a_slider_is_the_same_number_with_labels_on_its_ends():
    typed = question(type="number", low=0, high=100, epsilon=1)
    labelled = {"slider": True, "low_label": {"en": "None", "es": "Nada"}}
    slid = published({**typed, **labelled})
    without = json.loads(published({**typed, "text": {"en": "Q?", "es": "¿P?"}}).canonical)
    form = json.loads(slid.canonical)
    (page,) = form["pages"]
    assert page["questions"][0].pop("slider") == {"low": "None", "high": ""}
    (translation,) = form["translations"]["es"]["pages"]
    assert translation["questions"][0].pop("slider") == {"low": "Nada", "high": ""}
    assert form["pages"] == without["pages"]
    assert freeze(load(json.dumps(source_of(slid)).encode(), "s.json", Caps()), 1) == slid
    draft = draft_from(source_of(slid))
    assert freeze(check(definition_from(draft), Caps()), 1) == slid


def test_a_slider_of_too_many_points_suggests_a_coarser_one_or_a_typed_number():
    for (low, high, step), nearest in {
        (0, 101, 1): "step = 2 with high = 102",
        (0, 200, 1): "step = 2",
        (0, 997, 1): "step = 10 with high = 1000",
        ("-1", "29.3", "0.3"): "step = 0.6 with high = 29.6",
    }.items():
        fields = {"low": low, "high": high, "step": step}
        ((_, text),) = mistakes(question(type="number", **fields, slider=True, epsilon=1))
        assert "step is too fine for a slider, which has at most 101 points (found " in text, text
        assert "leave out slider to ask for a typed number" in text
        assert text.endswith(f"; the nearest allowed value is {nearest}"), text
        changed = {**fields, **dict(part.split(" = ") for part in nearest.split(" with "))}
        published(question(type="number", **changed, slider=True, epsilon=1))
    ((_, text),) = mistakes(question(type="number", low=0, high=9, low_label="a", epsilon=1))
    assert text == "low_label and high_label of a number need slider = true"
    assert "tick “Show as a slider”, or clear them" in form_message(text)


NUMBER = {"type": "number", "low": 0, "high": 10}
DATE = {"type": "date", "low": "2020-01-01"}
CARDS = {"type": "yes_no", "mechanism": "warner"}
COINS = {"type": "yes_no", "mechanism": "two_coins"}


@pytest.mark.slow
@each_case(
    ("form", "words"),
    [
        ({**NUMBER, "high": 5000, "epsilon": 1}, "found 5,001.*step = 6 with high = 4998"),
        ({**NUMBER, "high": 9990, "epsilon": 1}, "step = 10$"),
        ({**NUMBER, "step": 3, "epsilon": 1}, "high = 9"),
        ({"type": "number", "low": 5, "high": 5, "epsilon": 1}, "high = 6"),
        ({**NUMBER, "high": 1, "step": 0, "epsilon": 1}, "step = 0.*is step = 1$"),
        ({**NUMBER, "high": 1, "step": "1/3", "epsilon": 1}, "decimals.*step = 0.333333"),
        ({**NUMBER, "high": 10**13, "step": 10**12, "epsilon": 1}, "digits"),
        ({**NUMBER, "epsilon": 13}, "epsilon = 6.946"),
        ({**NUMBER, "epsilon": 0}, "epsilon = 0.001"),
        ({**NUMBER, "truth_probability": 0.8}, "state epsilon"),
        ({**NUMBER, "options": OPTIONS, "epsilon": 1}, "known key"),
        ({**NUMBER, "high": 5, "mechanism": "square_wave", "epsilon": 1}, "7 points.*high = 6$"),
        ({**DATE, "high": "2030-01-01", "epsilon": 1}, "step = 4 with high = 2029-12-31$"),
        ({"type": "date", "low": "2020-01-02", "high": "2020-01-01", "epsilon": 1}, "after"),
        ({**DATE, "high": "2020-01-03", "step": 9, "epsilon": 1}, "is step = 2$"),
        ({"type": "date", "low": "soon", "high": "2020-01-01", "epsilon": 1}, "date"),
        ({"type": "scale", "low": 1, "epsilon": 1}, "low and high"),
        ({"type": "scale", "low": 1, "high": 1, "epsilon": 1}, "2 to 99 points.*high = 2$"),
        ({"type": "scale", "low": 0, "high": 10**9, "epsilon": 1}, "2 to 99 points.*high = 98$"),
        ({"type": "scale", "options": OPTIONS, "low_label": "x", "epsilon": 1}, "go with low"),
        ({"type": "multiple_choice", "options": OPTIONS, "max_ticks": 9, "epsilon": 1}, "= 4$"),
        ({"type": "multiple_choice", "options": OPTIONS, "none_of_these": False, "epsilon": 1}, ""),
        ({"type": "multiple_choice", "options": OPTIONS, "epsilon": 13}, "epsilon = 7.367"),
        ({"type": "multiple_choice", "options": OPTIONS, "truth_probability": 0.5}, "0.501"),
        ({"type": "yes_no", "mechanism": "square_wave", "epsilon": 1}, "not exist for a yes_no"),
        ({"type": "yes_no", "mechanism": "magic", "epsilon": 1}, "grr, best, warner, two_coins"),
        ({**COINS, "parameters": {"truth": "1/2"}}, "truth, yes"),
        ({**COINS, "epsilon": 1}, "state truth"),
        ({**CARDS, "parameters": {"p": "1/3"}}, "above 1/2.*p = 0.501"),
        ({**CARDS, "parameters": {"p": 1}}, "p = 0.994"),
        ({"type": "yes_no", "epsilon": 1, "parameters": {"x": 1}}, "no parameters"),
        ({"options": OPTIONS, "mechanism": "forced_response",
          "parameters": {"truth": "1/2", "forced": ["1/2", "1/4"]}}, "3|4|forced"),
        ({"options": OPTIONS, "mechanism": "exponential", "epsilon": 1,
          "parameters": {"utility": [[1]]}}, "utility|table|rows"),
        ({**NUMBER, "mechanism": "gaussian",
          "parameters": {"sigma": "0.1"}}, "sigma"),
    ],
)  # fmt: skip
def test_invalid_questions_are_rejected_with_the_nearest_allowed_value(form, words):
    listed_mistakes = mistakes(question(**form))
    assert len(listed_mistakes) == 1, listed_mistakes
    assert re.search(words, listed_mistakes[0][1]), listed_mistakes[0]


def parent(**fields: object) -> dict[str, object]:
    return question(id="parent", type="yes_no", epsilon=1, **fields)


def child(**fields: object) -> dict[str, object]:
    return question(
        type="yes_no", epsilon=1, ask_if={"question": "parent", "options": ["yes"]}, **fields
    )


def test_a_question_that_may_be_skipped_gets_the_option_does_not_apply():
    _, dependent = published(parent(), child(), allow_skip_logic=True).questions
    assert dependent.not_applicable == "does_not_apply"
    assert dependent.channel.k == 4


@each_case(
    ("questions", "fields", "words"),
    [
        ([parent(), child()], {}, "allow_skip_logic = true"),
        ([child(), parent()], {"allow_skip_logic": True}, "earlier page"),
        ([child()], {"allow_skip_logic": True}, "earlier page$"),
        ([parent(), child(does_not_apply=False)], {"allow_skip_logic": True}, "does_not_apply"),
        (
            [parent(), {**child(), "ask_if": {"question": "parent", "options": ["maybe"]}}],
            {"allow_skip_logic": True},
            '"maybe" is not an option of parent; available: yes, no, prefer_not_to_say',
        ),
        (
            [
                question(id="parent", type="number", low=0, high=9, epsilon=1),
                child(),
            ],
            {"allow_skip_logic": True},
            "not a question with options",
        ),
    ],
)
def test_impossible_skip_logic_is_rejected(questions, fields, words):
    listed = mistakes(*questions, **fields)
    assert len(listed) == 1
    assert "ask_if" in listed[0][0]
    assert re.search(words, listed[0][1])


def test_a_question_on_the_same_page_does_not_count_as_earlier():
    content = json.loads(survey_bytes(parent(), child(), allow_skip_logic=True))
    content["pages"] = [{"questions": [parent(), child()]}]
    with pytest.raises(DefinitionError, match="earlier page"):
        load(json.dumps(content).encode(), "s.json", Caps())


def test_with_sampled_questions_epsilon_counts_only_the_asked_questions():
    questions = [question(id=f"q{i}", type="yes_no", epsilon=e) for i, e in enumerate((1, 2, 3))]
    all_of_them, two = published(*questions), published(*questions, questions_per_person=2)
    assert all_of_them.epsilon == pytest.approx(6, abs=1e-3)
    assert two.epsilon == pytest.approx(5, abs=1e-3)
    assert two.is_sampled
    assert not all_of_them.is_sampled


def test_a_question_and_those_that_depend_on_it_are_drawn_together():
    definition = published(
        parent(), child(), question(id="other", type="yes_no", epsilon=1.5),
        allow_skip_logic=True, questions_per_person=1,
    )  # fmt: skip
    assert definition.groups == (("parent", "q"), ("other",))
    assert definition.epsilon == pytest.approx(2, abs=1e-3)


@each_case(("n_drawn", "nearest"), [(0, 1), (-3, 1), (2, 1), (9, 1)])
def test_more_questions_than_the_survey_has_cannot_be_drawn(n_drawn, nearest):
    questions = [question(id=f"q{i}", type="yes_no", epsilon=1) for i in range(2)]
    ((place, text),) = mistakes(*questions, questions_per_person=n_drawn)
    assert place == "questions_per_person"
    assert text.endswith(f"nearest allowed value is {nearest}")


def test_sampling_one_question_out_of_one_is_rejected():
    ((_, text),) = mistakes(parent(), questions_per_person=1)
    assert "cannot be drawn" in text


def test_the_cap_counts_the_questions_that_each_respondent_is_asked():
    questions = [question(id=f"q{i}", type="yes_no", epsilon=4) for i in range(8)]
    assert "total epsilon" in mistakes(*questions)[0][1]
    assert published(*questions, questions_per_person=4).epsilon <= 16


def test_every_design_belongs_to_a_type_of_question():
    assert {name for kind in KINDS.values() for name in kind.mechanisms} == set(DESIGNS)
    assert {way for design in DESIGNS.values() for way in design.ways} >= set(PRIVACY)


def test_the_ledger_adds_up_questions_and_compares_other_compositions():
    definition = freeze(load(EVERY_DESIGN, "every.toml", Caps()), 1)
    totals = ledger(definition)
    assert totals.epsilon == definition.epsilon
    assert totals.questions_asked == len(definition.questions) == len(totals.entries)
    assert totals.waves[2] == pytest.approx(2 * totals.epsilon)
    assert totals.together[4] == pytest.approx(4 * totals.epsilon)
    assert totals.advanced is None
    assert "optimal composition" not in "".join(lines(totals))
    # "hours" depends on "yes" to "works", so each report gives information about both answers.
    works, hours = totals.entries[0].epsilon, totals.entries[3].epsilon
    assert totals.apart == pytest.approx(max(works + hours, *(e.epsilon for e in totals.entries)))
    assert totals.entries[0].odds == totals.entries[3].odds
    assert Fraction(totals.ratio) == definition.ratio
    assert json.loads(json.dumps(totals.to_json()))["odds"] == totals.odds


def test_the_ledger_states_what_shuffling_hides_from_each_reader():
    text = "\n".join(lines(ledger(published(question(type="yes_no", epsilon="1.0986")))))
    for sentence in (
        "against somebody who reads every release: 25 reports 1.099 (no gain)",
        "reads only the final totals: 1,000 reports 0.21, 100,000 reports 0.018",
        "against anyone who can send or use the other reports: no gain",
    ):
        assert sentence in text


def test_the_ledger_shows_the_optimal_composition_where_it_is_below_the_sum():
    weak = [question(id=f"q{i}", type="yes_no", epsilon="0.05") for i in range(60)]
    totals = ledger(published(*weak))
    assert 1 < totals.advanced < 2 < totals.epsilon
    assert any("optimal composition, a weaker guarantee: 1." in line for line in lines(totals))


def test_incompatible_ticks_are_not_an_answer():
    (choice,) = published(
        question(type="multiple_choice", options=OPTIONS, mechanism="subsets", epsilon=4)
    ).questions
    assert choice.truth([0, 2]) == 4
    with pytest.raises(KeyError):
        choice.truth([0, 4])


def test_too_many_sets_of_options_are_rejected():
    options = [{"id": f"o{i}", "label": f"O{i}"} for i in range(12)]
    ((_, text),) = mistakes(
        question(type="multiple_choice", options=options, mechanism="subsets", epsilon=4)
    )
    assert "more than 1,024 sets" in text
    with pytest.raises(ChannelError):
        BitVector(3, 3, 3, 1, alone=1)


def test_the_check_states_the_combined_epsilon_of_linked_questions():
    first = question(type="yes_no", truth_probability="3/4")
    follows = [
        question(
            id=name,
            type="yes_no",
            truth_probability="3/4",
            ask_if={"question": "q", "options": ["yes"]},
        )
        for name in ("r", "s")
    ]
    totals = ledger(published(first, *follows, allow_skip_logic=True))
    # Three options: 6; four, with "does not apply": 9.
    assert totals.entries[0].ratio == "6"
    assert totals.entries[0].linked_epsilon == totals.to_json()["entries"][0]["linked_epsilon"]
    assert totals.entries[0].linked_epsilon == pytest.approx(math.log(6 * 9 * 9))
    line = lines(totals)[2]
    assert "epsilon 1.792 (with the questions linked to it: epsilon 6.187); odds" in line
    assert line.endswith("of 10% becomes at most 99%, of 50% can become more than 99%")


def test_the_check_of_unlinked_questions_names_one_epsilon():
    line = lines(ledger(published(question(type="yes_no", epsilon=1))))[2]
    assert "linked" not in line
