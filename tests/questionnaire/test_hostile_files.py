"""Hostile definition files are rejected quickly, by name and without terminal escapes."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from survey.errors import DefinitionError
from survey.questionnaire.error_messages import MAX_LISTED, printable
from survey.questionnaire.loading import load, load_file
from survey.settings import Caps
from tests.cases import each_case

pytestmark = pytest.mark.security


def mistakes(form: object, name: str = "x.json") -> list[tuple[str, str]]:
    content = form if isinstance(form, bytes) else json.dumps(form).encode()
    started = time.process_time()
    with pytest.raises(DefinitionError) as refused:
        load(content, name, Caps())
    assert time.process_time() - started < 5
    assert len(str(refused.value)) < 50_000
    assert all((place + text).isprintable() for place, text in refused.value.mistakes)
    return refused.value.mistakes


def survey(*questions: object, **fields: object) -> dict[str, object]:
    return {"slug": "s", "title": "S", "epsilon": 1, "pages": [{"questions": questions}], **fields}


def question(**fields: object) -> dict[str, object]:
    return {"id": "q", "type": "yes_no", "text": "Q?", **fields}


@each_case("name", ["truth_probability", "keep_probability", "epsilon"])
@each_case("number", ["1e400", "1e9999999", "1e-9999999", "1e99999999999999999999"])
@each_case("ending", ["toml", "json"])
def test_a_number_too_long_to_be_exact_is_rejected_at_once(name, number, ending):
    content = f"{name} = {number}" if ending == "toml" else f'{{"{name}": {number}}}'
    if ending == "toml":
        content = f'[[questions]]\nid = "q"\ntype = "yes_no"\ntext = "Q?"\n{content}'
    else:
        content = f'{{"questions": [{{"type": "yes_no", {content[1:]}]}}'
    assert any("number" in text for _, text in mistakes(content.encode(), f"x.{ending}"))


@pytest.mark.slow
def test_an_object_of_70_000_keys_is_rejected_at_once():
    listed_mistakes = mistakes({f"k{i}": 1 for i in range(70_000)})
    assert len(listed_mistakes) == MAX_LISTED + 1
    assert listed_mistakes[-1] == ("and so on", "69,903 more mistakes")


def test_a_duplicate_key_is_named_among_70_000():
    keys = ", ".join(f'"key{i}": 1' for i in range(60_000))
    ((_, text),) = mistakes(f'{{{keys}, "key7": 2}}'.encode())
    assert '"key7" is given twice' in text


@pytest.mark.slow
@each_case(
    ("form", "place", "words"),
    [
        (survey(*[{}] * 100_000), "pages", "has 100,000 questions; at most 200 are allowed"),
        (survey(*[None] * 201), "pages", "has 201 questions; at most 200 are allowed"),
        ({"pages": [{}] * 201}, "pages", "has 201 pages; at most 200 are allowed"),
        (
            survey(question(type="single_choice", options=[{}] * 100_000)),
            "page 1, question 1 (q), options",
            "has 100,000 entries; the nearest allowed number is 100",
        ),
    ],
)
def test_too_many_entries_are_the_only_listed_mistake(form, place, words):
    assert mistakes(form) == [(place, words)]


def test_two_hundred_questions_full_of_mistakes_are_listed_up_to_a_hundred():
    listed_mistakes = mistakes(survey(*[question(id="Q", colour=1)] * 200))
    assert len(listed_mistakes) == MAX_LISTED + 1
    assert listed_mistakes[-1][1].endswith("more mistakes")


@each_case(
    "form",
    [
        survey(question(id="\ud800")),
        survey(question(**{"\udfff": 1})),
        {"\ud800": 1},
        "\ud800",
        survey(question(help="\ud83d")),
        ["\udc00"],
    ],
)
def test_half_a_surrogate_pair_anywhere_is_a_mistake_with_the_files_name(form):
    ((place, text),) = mistakes(form)
    assert place == "x.json"
    assert "is half of a Unicode character" in text
    str(mistakes(form)).encode()


def test_a_whole_surrogate_pair_in_json_is_a_character():
    form = json.dumps(survey(question(text="\U0001f600?")))
    assert "\\ud83d\\ude00" in form
    assert next(load(form.encode(), "x.json", Caps()).questions).text == "\U0001f600?"


@each_case("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_define_are_rejected_by_name(constant):
    ((place, text),) = mistakes(f'{{"slug": {constant}}}'.encode())
    assert (place, text) == (
        "x.json",
        f"cannot be parsed: {constant} is not a number in JSON",
    )


STEERING = "\x1b]0;owned\x07\x1b[2J\u202e\u2028\x9b31m\r\n"


@each_case(
    "form",
    [
        {STEERING: 1},
        {"slug": STEERING},
        survey(question(id=STEERING)),
        survey(question(type=STEERING)),
        survey(question(**{STEERING: 1})),
        survey(question(epsilon=STEERING)),
        survey(question(id=STEERING), question(id=STEERING)),
        survey(question(prefer_not_to_say=STEERING)),
        survey(language=STEERING),
        b'{"a\\u001b[31m": 1, "a\\u001b[31m": 2}',
    ],
)
def test_error_messages_about_a_file_contain_no_terminal_escapes(form):
    assert mistakes(form)


def test_the_name_of_a_file_is_shown_without_terminal_escapes():
    assert mistakes(b"{", f"{STEERING}.json")[0][0].startswith("\\x1b]0;owned")
    assert len(mistakes(b"", "n" * 100_000)[0][0]) < 100


def test_unprintable_characters_are_shown_as_escapes():
    assert printable("é 日本 \U0001f600") == "é 日本 \U0001f600"
    assert printable("\x1b\u202e\ud800\n") == r"\x1b\u202e\ud800\n"


@pytest.mark.slow
@given(st.text())
def test_printed_text_is_printable(text):
    assert printable(text).isprintable()


LONG = "x" * 300_000


@each_case(
    "form",
    [
        {LONG: 1},
        survey(question(**{LONG: 1})),
        survey(question(id=LONG), question(id=LONG)),
        survey(question(type=LONG)),
        survey(question(text=LONG)),
        survey(slug=LONG),
        survey(question(epsilon=LONG)),
        survey(question(options=[{"id": LONG, "label": LONG}] * 2)),
        f'{{"{LONG}": 1, "{LONG}": 2}}'.encode(),
    ],
)
def test_long_keys_and_values_are_shortened_in_messages(form):
    assert max(len(place + text) for place, text in mistakes(form)) < 500


@each_case(
    "key",
    [
        "a." * 100_000 + "a",
        '"a" . ' * 100_000 + "a",
        "a" * 900_000,
        "a-" * 400_000,
        '"' * 900_000,
        "." * 900_000,
    ],
)
def test_a_toml_key_of_very_many_parts_is_rejected_at_once(key):
    assert mistakes(f"{key} = 1".encode(), "x.toml")


@each_case("value", ["[" * 900 + "]" * 900, '{"a":' * 300 + "1" + "}" * 300])
@each_case("key", ["type", "epsilon", "id", "prefer_not_to_say", "options", "other"])
def test_a_value_nested_deeply_is_one_named_mistake(key, value):
    assert mistakes(f'{{"questions": [{{"{key}": {value}}}]}}'.encode())


def test_an_endless_file_is_read_only_up_to_the_limit(tmp_path):
    endless = tmp_path / "x.toml"
    endless.symlink_to("/dev/zero")
    with pytest.raises(DefinitionError, match="larger than"):
        load_file(endless, Caps())
