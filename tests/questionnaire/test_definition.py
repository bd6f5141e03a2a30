"""Definitions: error messages with their places, and the immutable published form."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import string
from dataclasses import asdict
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import DefinitionError
from survey.mechanism import grr
from survey.questionnaire.canonical import freeze, read_definition, read_question
from survey.questionnaire.definition import (
    groups_of,
    linked_ids,
    linked_ratios,
    ratio_about,
    ratios_of,
)
from survey.questionnaire.ledger import ledger
from survey.questionnaire.limits import MAX_TRUTH_PROBABILITY
from survey.questionnaire.loading import load, load_file
from survey.questionnaire.privacy_loss import (
    WEAK_QUESTION_ABOVE,
    WEAK_REPORT_ABOVE,
    Bounds,
    label,
    labels,
    odds_in_words,
)
from survey.settings import Caps
from tests.cases import each_case
from tests.conftest import ROOT, SMALL

CAPS = Caps()


def mistakes(text: str, name: str = "x.toml", caps: Caps = CAPS) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionError) as refused:
        load(text.encode(), name, caps)
    return refused.value.mistakes


def survey_with(question: str, head: str = "") -> str:
    return f'slug = "s"\ntitle = "S"\n{head}\n[[questions]]\nid = "q"\ntext = "Q?"\n{question}\n'


def test_toml_and_json_give_the_same_definition():
    toml = load(SMALL.encode(), "small.toml", Caps())
    question = {"id": "fell_asleep", "type": "yes_no", "text": "Did you fall asleep at work?"}
    second = {
        "id": "pressure",
        "type": "single_choice",
        "prefer_not_to_say": False,
        "text": "Did anybody press you to stay longer?",
        "options": [{"id": i, "label": i.title()} for i in ("never", "once", "often")],
    }
    form = {
        "slug": "small",
        "title": "A small survey",
        "introduction": "Two questions.",
        "truth_probability": 0.75,
        "pages": [
            {"title": "First page", "questions": [question]},
            {"title": "Second page", "questions": [second]},
        ],
    }
    assert freeze(load(json.dumps(form).encode(), "small.json", Caps()), 1) == freeze(toml, 1)


def test_prefer_not_to_say_is_an_option_inside_the_randomizer_by_default():
    first, second = freeze(load(SMALL.encode(), "small.toml", Caps()), 1).questions
    assert [option.id for option in first.options] == ["yes", "no", "prefer_not_to_say"]
    assert (first.opt_out, first.channel) == ("prefer_not_to_say", grr(3, "3/4"))
    assert (second.opt_out, second.channel.k) == ("", 3)


@each_case(
    ("privacy", "p"),
    [
        ("truth_probability = 0.6", Fraction(3, 5)),
        ('truth_probability = "3/5"', Fraction(3, 5)),
        ("keep_probability = 0.4", Fraction(3, 5)),
        (f"epsilon = {1.0986122886681098}", Fraction(3, 5)),
    ],
)
def test_privacy_is_stated_as_truth_probability_keep_probability_or_epsilon(privacy, p):
    survey = load(survey_with(f'type = "yes_no"\n{privacy}').encode(), "x.toml", Caps())
    assert next(survey.questions).channel.exact_p == p


def test_the_surveys_privacy_applies_to_questions_without_their_own():
    text = survey_with('type = "yes_no"\nepsilon = 1', "truth_probability = 0.9")
    text += '[[questions]]\nid = "r"\ntype = "yes_no"\ntext = "R?"\n'
    first, second = load(text.encode(), "x.toml", Caps()).questions
    assert first.channel.epsilon <= 1
    assert second.channel.exact_p == Fraction(9, 10)


@each_case(
    ("question", "place", "words"),
    [
        ('type = "yes_no"', "page 1, question 1 (q)", "state one of"),
        (
            'type = "yes_no"\nepsilon = 1\ntruth_probability = 0.7',
            "page 1, question 1 (q)",
            "not truth_probability and epsilon",
        ),
        (
            'type = "yes_no"\ntruth_probability = 0.3',
            "page 1, question 1 (q)",
            "value is truth_probability = 0.334",
        ),
        (
            'type = "yes_no"\ntruth_probability = "1/3"',
            "page 1, question 1 (q)",
            "value is truth_probability = 0.334",
        ),
        (
            'type = "yes_no"\ntruth_probability = 1',
            "page 1, question 1 (q)",
            "value is truth_probability = 0.99",
        ),
        (
            'type = "yes_no"\ntruth_probability = 0.995',
            "page 1, question 1 (q)",
            "truth_probability = 0.99",
        ),
        (
            'type = "yes_no"\ntruth_probability = nan',
            "page 1, question 1 (q), truth_probability",
            "not a number",
        ),
        ('type = "yes_no"\nepsilon = 13', "page 1, question 1 (q)", "value is epsilon = 5.288"),
        ('type = "free_text"\nepsilon = 1', "page 1, question 1 (q), type", "cannot be randomized"),
        ('type = "single_choice"\nepsilon = 1', "page 1, question 1 (q), options", "is missing"),
        (
            'type = "single_choice"\nepsilon = 1\noptions = [{id = "a", label = "A"}]',
            "page 1, question 1 (q), options",
            "nearest allowed number is 2",
        ),
        (
            'type = "single_choice"\nepsilon = 1\n'
            'options = [{id = "a", label = "A"}, {id = "a", label = "B"}]',
            "page 1, question 1 (q), option 2 (a), id",
            'nearest free id is "a_2"',
        ),
        (
            'type = "single_choice"\nepsilon = 1\noptions = [{id = "a", label = "A"}, '
            '{id = "prefer_not_to_say", label = "B"}]',
            "page 1, question 1 (q), option 2 (prefer_not_to_say), id",
            "added automatically",
        ),
        (
            'type = "single_choice"\nepsilon = 1\noptions = [{id = "A", label = "A"}, '
            '{id = "b", label = ""}]',
            "page 1, question 1 (q), option 2 (b), label",
            "is empty",
        ),
        (
            'type = "yes_no"\nepsilon = 1\nquota = 3',
            "page 1, question 1 (q), quota",
            "not a known key",
        ),
        (
            'type = "yes_no"\nepsilon = 1\nhelp = "a\\u0000b"',
            "page 1, question 1 (q), help",
            "control characters",
        ),
    ],
)
def test_every_mistake_is_named_with_its_place_and_the_nearest_value(question, place, words):
    texts = [text for where, text in mistakes(survey_with(question)) if where == place]
    assert any(words in text for text in texts), mistakes(survey_with(question))


def test_all_mistakes_are_listed_at_once():
    text = (
        'slug = "Two words"\ncolour = "red"\n[[questions]]\nid = "q"\ntype = "yes_no"\n'
        'text = "Q?"\ntruth_probability = 0.1\n[[questions]]\nid = "q"\ntype = "single_choice"\n'
        '[[questions]]\nid = "where"\ntype = "map"\n'
    )
    places = [place for place, _ in mistakes(text)]
    assert places == [
        "colour",
        "page 1, question 1 (q)",
        "page 1, question 2 (q), id",
        "page 1, question 2 (q), options",
        "page 1, question 2 (q), text",
        "page 1, question 3 (where), text",
        "page 1, question 3 (where), type",
        "slug",
        "title",
    ]


@pytest.mark.security
def test_a_survey_is_for_shared_devices_or_by_invitation_but_not_both():
    for keys in ("kiosk = true", 'access = "invitation"'):
        load(f"{keys}\n{SMALL}".encode(), "s.toml", Caps())
    with pytest.raises(DefinitionError) as raised:
        load(f'kiosk = true\naccess = "invitation"\n{SMALL}'.encode(), "s.toml", Caps())
    (mistake,) = str(raised.value).splitlines()
    assert 'kiosk: needs access = "open": an invitation belongs to one person' in mistake


def test_a_total_epsilon_above_the_cap_is_rejected_with_the_nearest_allowed_value():
    text = 'slug = "s"\ntitle = "S"\nepsilon = 4\n' + "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q?"\n' for i in range(6)
    )
    ((place, words),) = mistakes(text)
    assert place == "pages"
    assert "above the cap of 20" in words
    assert "epsilon = 3.333 each" in words
    allowed = text.replace("epsilon = 4", "epsilon = 3.333")
    assert freeze(load(allowed.encode(), "x.toml", Caps()), 1).epsilon <= 20
    # One question of epsilon 4 has a factor of 55, but one of 2.9 stays below 20.
    assert "questions_per_person" not in words
    many = text.replace("epsilon = 4", "epsilon = 2.9") + text[text.index("[[") :].replace("q", "r")
    ((_, words),) = mistakes(many.replace("[[ruestions]]", "[[questions]]"))
    assert "; or ask each person 1 of them (questions_per_person = 1)" in words


def test_an_instance_can_cap_one_question():
    caps = Caps(question=Decimal(2))
    ((_, words),) = mistakes(survey_with('type = "yes_no"\nepsilon = 3'), caps=caps)
    assert "nearest allowed value is epsilon = 2" in words


@each_case(
    ("content", "name", "words"),
    [
        (b"slug = 'a'\ntitle", "x.toml", "cannot be parsed"),
        (b'{"slug": "a", "slug": "b"}', "x.json", "given twice"),
        (b"[" * 100_000, "x.json", "nested"),
        (b"[]", "x.json", "one object"),
        (b"\xff\xfe", "x.toml", "UTF-8"),
        (b"", "x.yaml", ".toml or .json"),
        (b" " * 1_000_001, "x.toml", "larger"),
        (b'{"slug": "\\ud800"}', "x.json", "Unicode"),
        (b'{"pages": {"a": 1}}', "x.json", "valid tuple"),
        (b'{"pages": [[], 3, {"questions": [4, null]}]}', "x.json", "valid dictionary"),
    ],
)
def test_an_unreadable_file_is_rejected_with_the_reason(content, name, words):
    with pytest.raises(DefinitionError, match=re.escape(words)):
        load(content, name, Caps())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "slug",
                    "title",
                    "pages",
                    "questions",
                    "id",
                    "type",
                    "text",
                    "options",
                    "label",
                    "epsilon",
                    "prefer_not_to_say",
                    "help",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@pytest.mark.slow
@given(JSON)
def test_files_with_arbitrary_content_raise_only_definition_errors(form):
    with contextlib.suppress(DefinitionError):
        load(json.dumps(form).encode(), "x.json", Caps())


def test_a_missing_file_is_rejected_by_name(tmp_path):
    with pytest.raises(DefinitionError, match="No such file"):
        load_file(tmp_path / "none.toml", Caps())


def test_a_published_definition_is_canonical_json_without_floats_identified_by_its_hash():
    definition = freeze(load(SMALL.encode(), "small.toml", Caps()), 1)
    form = json.loads(definition.canonical, parse_float=pytest.fail)
    again = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert again.encode() == definition.canonical
    assert hashlib.sha256(definition.canonical).hexdigest() == definition.sha256
    assert read_definition(definition.canonical) == definition


def test_the_version_is_part_of_the_hash():
    survey = load(SMALL.encode(), "small.toml", Caps())
    assert freeze(survey, 1).sha256 != freeze(survey, 2).sha256


def test_reports_of_a_survey_have_one_length_below_8_kb():
    questions = "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q?"\n' for i in range(200)
    )
    definition = freeze(
        load(f'slug="s"\ntitle="S"\nepsilon=0.1\n{questions}'.encode(), "x.toml", Caps()), 1
    )
    assert definition.report_bytes % 256 == 0
    assert 600 < definition.report_bytes <= 8192


LABELS = json.loads((ROOT / "tests/vectors/label.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@each_case("vector", LABELS)
def test_the_privacy_label_agrees_with_the_clients(vector):
    questions = [read_question(form, nullable=False) for form in vector["questions"]]
    ratios = ratios_of(questions)
    groups = groups_of(questions)
    everything = {"draw": len(groups), "groups": groups}
    sampling = vector["sampling"] or everything
    for topic, figures in vector["topics"].items():
        names = [question.id for question in questions if question.topic == topic]
        together = linked_ids(names, groups)
        ratio = ratio_about(sampling["groups"], ratios, sampling["draw"], together)
        assert asdict(Bounds.of(ratio)) == figures, topic
    linked = linked_ratios(groups, ratios)
    assert {
        question.id: asdict(label(question, linked[question.id])) for question in questions
    } == vector["labels"]


def test_the_example_of_the_product_page_matches_the_label():
    question = """slug = "example"
        title = "E"
        truth_probability = "3/4"
        prefer_not_to_say = {}
        questions = [{{id = "q", type = "yes_no", text = "Q?"}}]"""
    two, three = (
        freeze(load(question.format(flag).encode(), "example.toml", Caps()), 1).questions[0]
        for flag in ("false", "true")
    )
    numbers = label(two, two.channel.ratio)
    assert (numbers.own, numbers.other, numbers.odds) == ("75", "25", "3")
    assert label(three, three.channel.ratio).other == "12.5"
    assert odds_in_words(two.channel.ratio**10) == "59,049"


def test_seven_rewordings_of_a_question_have_the_factor_of_the_whole_report():
    text = """slug = "example"
        title = "E"
        truth_probability = "3/4"
        prefer_not_to_say = false
        """ + "".join(
        f'[[questions]]\nid = "q{i}"\ntype = "yes_no"\ntext = "Q{i}?"\n' for i in range(7)
    )
    definition = freeze(load(text.encode(), "example.toml", Caps()), 1)
    assert {numbers.odds for numbers in labels(definition).values()} == {"3"}
    assert ledger(definition).odds == "2,187"
    assert definition.ratio > WEAK_REPORT_ABOVE


def test_client_and_server_call_protection_weak_above_the_same_factors():
    source = (ROOT / "client_js/src/privacy-loss.js").read_text(encoding="utf-8")
    assert f"WEAK_QUESTION_ABOVE = {WEAK_QUESTION_ABOVE}n;" in source
    assert f"WEAK_REPORT_ABOVE = {WEAK_REPORT_ABOVE}n;" in source


def test_the_client_has_the_same_ceilings_built_in():
    channels, source = (
        (ROOT / f"client_js/src/{name}.js").read_text(encoding="utf-8")
        for name in ("definition-channels", "definition")
    )
    assert Fraction(99, 100) == MAX_TRUTH_PROBABILITY
    assert "MAX_PERCENT = 99n;" in channels
    # e^12 and e^20 with as many digits as the client has, rounded down.
    for epsilon, digits in ((12, 54), (20, 51)):
        with localcontext(prec=90):
            numerator = int(Decimal(epsilon).exp() * 10**digits)
        assert f"numerator: {numerator}n" in source.replace("_", "")
        assert f"denominator: 10n ** {digits}n" in source


def test_a_question_of_an_unknown_type_is_reported_among_all_other_mistakes():
    text = """
    slug = "s"
    title = ""
    epsilon = 1
    [[questions]]
    id = "a"
    type = "essay"
    text = ""
    colour = "red"
    low = 1
    options = [{ id = "One", label = "One" }]
    [[questions]]
    id = "a"
    text = "B?"
    prefer_not_to_say = 7
    [[questions]]
    id = "c"
    type = "yes_no"
    text = ""
    """
    with pytest.raises(DefinitionError) as refusal:
        load(text.encode(), "s.toml", Caps())
    assert [place for place, _ in refusal.value.mistakes] == [
        "page 1, question 1 (a), colour",
        "page 1, question 1 (a), option 1 (One), id",
        "page 1, question 1 (a), text",
        "page 1, question 1 (a), type",
        "page 1, question 2 (a), id",
        "page 1, question 2 (a), prefer_not_to_say",
        "page 1, question 2 (a), type",
        "page 1, question 3 (c), text",
        "title",
    ]
