"""Differences between two versions: each is named, and says what it means for comparisons."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from survey.errors import DefinitionError
from survey.questionnaire.canonical import freeze
from survey.questionnaire.loading import source_of
from survey.questionnaire.validation import check
from survey.results.version_changes import (
    VersionChanges,
    compare_versions,
    longest_increasing,
    text_segments,
)
from survey.settings import Caps
from tests.pictures import PETS
from tests.surveys import EVERY_TYPE, SKIPS, SLIDER, publish

SURVEY = """
slug = "work"
title = "Work"
introduction = "Two questions."
truth_probability = "3/5"

[[pages]]
title = "First"
[[pages.questions]]
id = "hurt"
type = "yes_no"
text = {en = "Were you hurt at work?", es = "¿Se lesionó en el trabajo?"}
[[pages.questions]]
id = "pressed"
type = "single_choice"
text = "Were you pressed to stay?"
truth_probability = "1/2"
options = [{id = "never", label = "Never"}, {id = "often", label = "Often"}]

[[pages]]
[[pages.questions]]
id = "tired"
type = "yes_no"
text = "Are you tired?"
[[pages.questions]]
id = "ill"
type = "yes_no"
text = "Were you ill?"
"""


def changes(old: str | bytes, new: str | bytes) -> VersionChanges:
    return compare_versions(publish(old), publish(new))


def after(*replacements: tuple[str, str]) -> VersionChanges:
    text = SURVEY
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    return changes(SURVEY, text)


def question(found: VersionChanges, name: str):
    return next(question for question in found.questions if question.id == name)


def named(found: VersionChanges) -> list[tuple[str, ...]]:
    """Return all changes as (question or "", label, before, after)."""
    return [
        *(("", change.label, change.before, change.after) for change in found.survey),
        *(
            (part.id, change.label, change.before, change.after)
            for part in found.questions
            for change in part.changes
        ),
    ]


TEXT = ('en = "Were you hurt at work?"', 'en = "Were you injured at work?"')
EXTRA_PAGE = ('[[pages]]\n[[pages.questions]]\nid = "tired"', '[[pages.questions]]\nid = "tired"')
STRICTER = ('truth_probability = "3/5"', 'truth_probability = "1/2"')
TEN_TO_25 = "ε 1.099: a suspicion of 10% becomes at most 25%"

CASES = {
    "a text": (
        [TEXT],
        [("hurt", "Question", "Were you hurt at work?", "Were you injured at work?")],
        {"hurt": ("with care", "Its text differs.")},
    ),
    "a translation": (
        [("¿Se lesionó", "¿Se hirió")],
        [
            (
                *("hurt", "Question (es)"),
                *("¿Se lesionó en el trabajo?", "¿Se hirió en el trabajo?"),
            )
        ],
        {"hurt": ("yes", "")},
    ),
    "an answer that is added": (
        [('{id = "often"', '{id = "once", label = "Once"}, {id = "often"')],
        [("pressed", "Answer added", "", "Once")],
        {"pressed": ("no", "Its answers differ.")},
    ),
    "an answer that is renamed": (
        [('label = "Often"', 'label = "Frequently"')],
        [("pressed", "Answer", "Often", "Frequently")],
        {"pressed": ("with care", "The texts of its answers differ.")},
    ),
    "the id of an answer": (
        [('id = "often"', 'id = "frequent"')],
        [("pressed", "Id of the answer “Often”", "often", "frequent")],
        {"pressed": ("no", "Its answers differ.")},
    ),
    "the order of answers": (
        [
            (
                '{id = "never", label = "Never"}, {id = "often", label = "Often"}',
                '{id = "often", label = "Often"}, {id = "never", label = "Never"}',
            )
        ],
        [
            (
                *("pressed", "Order of the answers"),
                *("Never; Often; Prefer not to say", "Often; Never; Prefer not to say"),
            )
        ],
        {"pressed": ("no", "Its answers differ.")},
    ),
    "an opt-out that is removed": (
        [('text = "Are you tired?"', 'text = "Are you tired?"\nprefer_not_to_say = false')],
        [("tired", "Answer removed", "Prefer not to say", "")],
        {"tired": ("no", "Its answers differ.")},
    ),
    "privacy": (
        [('"1/2"', '"3/5"')],
        [
            (
                *("pressed", "Privacy"),
                *("ε 0.694: a suspicion of 10% becomes at most 19%", TEN_TO_25),
            )
        ],
        {"pressed": ("with care", "Its randomization differs")},
    ),
    "the type": (
        [('type = "yes_no"\ntext = "Are you tired?"', 'type = "scale"\ntext = "Are you tired?"\n'
          "low = 0\nhigh = 2")],
        [("tired", "Type", "Yes or no", "A scale")],
        {"tired": ("no", "Its type differs.")},
    ),
    "a condition": (
        [
            ('title = "Work"', 'title = "Work"\nallow_skip_logic = true'),
            ('text = "Were you ill?"', 'text = "Were you ill?"\ndoes_not_apply = true\n'
             'ask_if = {question = "hurt", options = ["yes"]}'),
        ],
        [
            ("", "Skip logic allowed", "no", "yes"),
            (
                "ill",
                "Who is asked",
                "everyone",
                "people who answered “Yes” to “Were you hurt at work?”",
            ),
        ],
        {"ill": ("no", "Its answers differ.")},
    ),
    "the access": (
        [('title = "Work"', 'title = "Work"\naccess = "invitation"')],
        [("", "Who can answer", "everyone with the link", "invited people")],
        {"ill": ("yes", "")},
    ),
    "the number of questions": (
        [('title = "Work"', 'title = "Work"\nquestions_per_person = 2')],
        [("", "Questions per respondent", "all", "2 of 4")],
        {"ill": ("yes", "")},
    ),
    "a page break": (
        [EXTRA_PAGE],
        [("", "Pages of “Were you pressed to stay?” and “Are you tired?”",
          "on different pages", "on one page"), ("", "Number of pages", "2", "1")],
        {"ill": ("yes", "")},
    ),
    "a page title": (
        [('title = "First"', 'title = "Start"')],
        [("", "Page titles, page 1", "First", "Start")],
        {"ill": ("yes", "")},
    ),
    "a language": (
        [(', es = "¿Se lesionó en el trabajo?"', "")],
        [("", "Languages", "en, es", "en")],
        {"hurt": ("yes", "")},
    ),
    "the main text": (
        [('introduction = "Two questions."', 'introduction = "Four questions."')],
        [("", "Introduction", "Two questions.", "Four questions.")],
        {"hurt": ("yes", "")},
    ),
}  # fmt: skip


def test_each_difference_is_named_and_says_whether_estimates_can_be_compared():
    for case, (replacements, expected, verdicts) in CASES.items():
        found = after(*replacements)
        missing = set(expected) - set(named(found))
        assert not missing, (case, named(found))
        for name, (verdict, reason) in verdicts.items():
            part = question(found, name)
            assert part.verdict == verdict, (case, part)
            assert bool(part.reasons) == bool(reason), (case, part)
            assert reason in " ".join(part.reasons), (case, part)


def test_a_definition_does_not_differ_from_its_next_version_with_the_same_content():
    for text in (SURVEY, EVERY_TYPE, SKIPS, SLIDER):
        definition = publish(text)
        next_version = freeze(check(source_of(definition), Caps()), 2)
        found = compare_versions(definition, next_version)
        assert found.is_empty
        assert {part.verdict for part in found.questions} == {"yes"}


def test_a_slider_and_its_labels_are_differences_that_call_for_care():
    typed = SLIDER.replace("slider = true\n", "").replace("_label = ", "_unused = ")
    typed = "".join(line for line in typed.splitlines(True) if "_unused" not in line)
    other = SLIDER.replace("No pain", "None").replace("لا يُحتمل", "لا يُطاق")
    for old, new, expected in (
        (typed, SLIDER, ("typed", "on a slider, “No pain” to “Unbearable”")),
        (
            *(SLIDER, other),
            ("on a slider, “No pain” to “Unbearable”", "on a slider, “None” to “Unbearable”"),
        ),
    ):
        found = changes(old, new)
        assert ("pain", "How the number is entered", *expected) in named(found)
        assert question(found, "pain").verdict == "with care"
    arabic = ("pain", "Label of the highest (ar)", "لا يُحتمل", "لا يُطاق")
    assert arabic in named(changes(SLIDER, other))


def test_another_picture_or_description_calls_for_care():
    old = PETS.replace("CAT", "ab" * 32)
    new = old.replace("ab" * 32, "cd" * 32).replace("Un gato", "Otro gato")
    found = changes(old, new)
    picture = ("A grey cat (abababab)", "A grey cat (cdcdcdcd)")
    assert ("pet", "Picture of the answer “Cat”", *picture) in named(found)
    described = "Description of the picture of “cat” (es)"
    assert ("pet", described, "Un gato gris", "Otro gato gris") in named(found)
    assert question(found, "pet").reasons == ("The pictures of its answers differ.",)
    removed = changes(old, "".join(line for line in old.splitlines(True) if "picture" not in line))
    assert ("pet", "Picture of the answer “Cat”", picture[0], "none") in named(removed)


def test_a_question_that_moves_is_the_only_one_called_moved():
    ill = '[[pages.questions]]\nid = "ill"\ntype = "yes_no"\ntext = "Were you ill?"\n'
    first = '[[pages.questions]]\nid = "hurt"'
    found = after((ill, ""), (first, ill + first))
    assert [(part.id, part.status) for part in found.changed] == [("ill", "moved")]
    moved = question(found, "ill")
    assert (moved.number_before, moved.number_after, moved.verdict) == (4, 1, "with care")


def test_questions_that_are_added_or_removed_keep_their_place_in_the_list():
    added = '[[pages.questions]]\nid = "new"\ntype = "yes_no"\ntext = "New?"\n'
    tired = '[[pages.questions]]\nid = "tired"\ntype = "yes_no"\ntext = "Are you tired?"\n'
    found = after((tired, added))
    order = [(part.id, part.status) for part in found.questions]
    assert order == [
        ("hurt", "same"),
        ("pressed", "same"),
        ("tired", "removed"),
        ("new", "added"),
        ("ill", "same"),
    ]
    assert [part.id for part in found.with_verdict("no")] == []


def test_a_question_with_a_new_id_says_why_it_is_not_compared():
    found = after(('id = "ill"', 'id = "sick"'))
    assert "with the id ill" in question(found, "sick").reasons[0]


def test_words_that_differ_are_marked_in_phrases():
    segments = text_segments(
        "Were you hurt at work in the last year?", "Were you injured at work in the last month?"
    )
    assert [(part.kind, part.text) for part in segments] == [
        ("same", "Were you"),
        ("removed", "hurt"),
        ("added", "injured"),
        ("same", "at work in the last"),
        ("removed", "year?"),
        ("added", "month?"),
    ]
    # One equal word between two changes would split a phrase.
    joined = text_segments("we ask a b c here again", "we ask x b y here again")
    assert [(part.kind, part.text) for part in joined][1:3] == [
        ("removed", "a b c"),
        ("added", "x b y"),
    ]
    assert text_segments("Were you ill?", "Do colleagues sleep at night?") == ()


@given(st.permutations(range(7)))
def test_the_fewest_questions_are_called_moved(order):
    kept = longest_increasing(order)
    values = [order[place] for place in sorted(kept)]
    assert values == sorted(values)
    longest = [1] * len(order)
    for i in range(len(order)):
        for j in range(i):
            if order[j] < order[i]:
                longest[i] = max(longest[i], longest[j] + 1)
    assert len(kept) == max(longest)


WORDS = st.sampled_from(["Were you ill?", "Were you hurt at home?", "At work", "Nothing"])


def edited(source: dict, data: st.DataObject) -> str:
    """Change one thing in a definition file; return the id of its question, or ""."""
    pages = source["pages"]
    page = data.draw(st.sampled_from(pages))
    part = data.draw(st.sampled_from(page["questions"]))
    match data.draw(st.integers(0, 8)):
        case 0:
            part[data.draw(st.sampled_from(["text", "help", "topic"]))] = data.draw(WORDS)
        case 1:
            page["questions"].remove(part)
            assume(page["questions"])
        case 2:
            data.draw(st.sampled_from(pages))["questions"].append(part)
            page["questions"].remove(part)
            assume(page["questions"])
        case 3:
            options = part.get("options")
            assume(options)
            data.draw(st.sampled_from(options))["label"] = data.draw(WORDS)
        case 4:
            options = part.get("options")
            assume(options and len(options) > 2)
            options.remove(data.draw(st.sampled_from(options)))
        case 5:
            way = next(name for name in ("epsilon", "truth_probability") if name in part)
            part[way] = data.draw(st.sampled_from(["0.4", "0.6", "0.7"]))
        case 6:
            part["prefer_not_to_say"] = data.draw(st.sampled_from([True, False, "No answer"]))
        case 7:
            grid = [name for name in ("high", "step", "unit") if name in part]
            assume(grid)
            name = data.draw(st.sampled_from(grid))
            values = {"high": [30, 40, 60], "step": [1, 2, 10], "unit": ["h", "days"]}
            part[name] = data.draw(st.sampled_from(values[name]))
        case _:
            name, values = data.draw(
                st.sampled_from(
                    [
                        ("title", ["Other title"]),
                        ("consent", ["I agree."]),
                        ("bucket", ["day", "week"]),
                        ("access", ["invitation"]),
                        ("kiosk", [True]),
                        ("theme", ["plum"]),
                        ("quick_exit", ["https://example.org"]),
                        ("questions_per_person", [1, 2]),
                        ("language", ["es", "pt"]),
                        ("allow_skip_logic", [True]),
                        ("slug", ["other"]),
                    ]
                )
            )
            source[name] = data.draw(st.sampled_from(values))
            return ""
    return part["id"]


@pytest.mark.parametrize("text", [SURVEY, EVERY_TYPE, SKIPS], ids=["survey", "every type", "skips"])
@settings(max_examples=25)
@given(data=st.data())
def test_every_random_edit_is_named(text, data):
    old = publish(text)
    source = deepcopy(source_of(old))
    name = edited(source, data)
    try:
        new = freeze(check(source, Caps()), 1)
    except DefinitionError:
        assume(False)
    found = compare_versions(old, new)
    assert found.is_empty == (old.canonical == new.canonical)
    # Of two questions that change places, either can be the one that moved.
    is_move = any(part.is_moved for part in found.questions)
    if not found.is_empty and name and not is_move:
        assert name in {part.id for part in found.changed} or found.survey
    if not found.is_empty and not name:
        assert found.survey
    assert compare_versions(new, old).is_empty == found.is_empty
