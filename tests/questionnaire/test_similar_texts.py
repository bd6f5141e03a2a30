"""Nearly equal questions are found before publishing: precision and recall on written lists."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import pytest
from openpyxl import load_workbook

from survey.demo import definition as demo
from survey.methods import sections
from survey.questionnaire.similar_texts import WORDS_RAISE, nearly_equal, similarities, similarity
from tests.conftest import REFERENCE_DATA
from tests.questionnaire.rewordings import (
    BATTERIES,
    DIFFERENT,
    HELD_OUT_DIFFERENT,
    HELD_OUT_REWORDINGS,
    REWORDINGS,
)

Texts = Sequence[str]


def found(texts: Texts) -> list[tuple[str, str]]:
    similar = nearly_equal(texts, texts)
    return [(texts[i], texts[j]) for i, j in combinations(range(len(texts)), 2) if similar[i, j]]


def counts(lists: Mapping[str, Texts]) -> dict[str, int]:
    return {language: len(found(texts)) for language, texts in lists.items()}


def texts_found(texts: Texts) -> int:
    return len({text for pair in found(texts) for text in pair})


def test_four_or_five_of_seven_rewordings_are_found_in_each_language():
    """Recall: 40 of 84 pairs, 33 of 84 of the held-out ones; a paraphrase is never found."""
    assert counts(REWORDINGS) == {"en": 10, "es": 10, "pt": 10, "ar": 10}
    assert counts(HELD_OUT_REWORDINGS) == {"en": 10, "es": 7, "pt": 10, "ar": 6}
    assert [texts_found(texts) for texts in REWORDINGS.values()] == [5, 5, 5, 5]
    assert [texts_found(texts) for texts in HELD_OUT_REWORDINGS.values()] == [5, 5, 5, 4]


def test_different_questions_on_one_subject_are_hardly_ever_named():
    """Precision: 1 false alarm among 303 pairs, 0 among the 180 held-out ones."""
    assert counts(DIFFERENT) == {"en": 1, "es": 0, "pt": 0, "ar": 0}
    assert counts(HELD_OUT_DIFFERENT) == {"en": 0, "es": 0, "pt": 0, "ar": 0}


def test_short_texts_are_nearly_equal_only_if_one_has_all_words_of_the_other():
    different = (
        ("Yes, once", "Yes, twice"),
        ("1 to 2", "2 to 3"),
        ("1–2 times", "3–4 times"),
        ("Question 1?", "Question 2?"),
        ("How old are you?", "How tall are you?"),
        ("Are you ill?", "Are you well?"),
        ("Did you vote in 2020?", "Did you vote in 2024?"),
    )
    same = (
        ("Asleep?", "asleep"),
        ("Sleep at work?", "At work: sleep?"),
        ("Do you smoke?", "Do you smoke now?"),
        ("Did you steal any money from work?", "Did you steal some money from work?"),
    )
    assert [pair for pair in different if found(pair)] == []
    assert [pair for pair in same if not found(pair)] == []


def similarity_by_definition(first: str, second: str) -> float:
    """Compute the similarity of two texts pair by pair, with plain counts."""
    a, b = (re.findall(r"[a-z0-9]+", text.casefold()) for text in (first, second))
    counts = [
        Counter(f" {word} "[i : i + 3] for word in words for i in range(len(word)))
        for words in (a, b)
    ]
    norms = [math.sqrt(sum(n**2 for n in count.values())) for count in counts]
    if not all(norms):
        return 0.0
    cosine = sum(n * counts[1][part] for part, n in counts[0].items()) / math.prod(norms)

    def weight(words: set[str]) -> int:
        return sum(max(len(word) - 2, 0) ** 2 for word in words)

    smaller = min(weight({*a}), weight({*b}))
    if not smaller or min(len({*a}), len({*b})) < 2:
        return cosine
    return min((cosine + weight({*a} & {*b}) / smaller) / 2, cosine + WORDS_RAISE)


def test_all_similarities_at_once_equal_those_computed_pair_by_pair():
    texts = [*REWORDINGS["en"], *DIFFERENT["en"], *HELD_OUT_DIFFERENT["en"], "", "a b", "Work?"]
    expected = [[similarity_by_definition(first, second) for second in texts] for first in texts]
    assert similarities(texts, texts).tolist() == [
        pytest.approx(row, abs=1e-12) for row in expected
    ]


def test_the_methods_page_states_the_error_rates_of_these_lists():
    rewordings, different, batteries = (
        [texts for lists in lists_by_language for texts in lists.values()]
        for lists_by_language in (
            (REWORDINGS, HELD_OUT_REWORDINGS),
            (DIFFERENT, HELD_OUT_DIFFERENT),
            (BATTERIES,),
        )
    )
    text = sections()["nearly-equal"].source
    for lists, statement in (
        (rewordings, "finds {} of {} pairs of rewordings"),
        (different, "wrongly flags {} of {} pairs of different questions"),
        (batteries, "{} of {} pairs of items in a battery"),
    ):
        n_found = sum(len(found(texts)) for texts in lists)
        n_pairs = sum(math.comb(len(texts), 2) for texts in lists)
        assert statement.format(n_found, n_pairs) in text


def test_no_two_questions_of_the_demo_are_nearly_equal():
    assert found([question.text for question in demo().questions]) == []


@pytest.mark.reference
def test_questions_of_published_questionnaires_cause_one_false_alarm():
    """Two questions that differ in one word, of which the second asks for a shade of the first."""
    questionnaires = list(published_questionnaires())
    alarms = [pair for texts in questionnaires for pair in found(texts)]
    assert sum(len(texts) * (len(texts) - 1) // 2 for texts in questionnaires) >= 70
    assert len(alarms) == 1


def published_questionnaires() -> Iterator[list[str]]:
    """Yield the questions of each questionnaire that others published."""
    forms = REFERENCE_DATA / "forms"
    all_labels: set[str] = set()
    for name in ("group", "or_other", "specify_other", "yes_or_no_question"):
        rows = list(load_workbook(forms / f"{name}.xlsx")["survey"].iter_rows(values_only=True))
        column = next(i for i, head in enumerate(rows[0]) if str(head).startswith("label"))
        all_labels |= {str(row[column]) for row in rows[1:] if row[column]}
    yield sorted(all_labels)
    form = json.loads((forms / "surveyjs_frameworks.json").read_text(encoding="utf-8"))
    titles = list(titles_in(form))
    for language in ("default", "fr"):
        yield [title[language] for title in titles]


def titles_in(value: object) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        if "type" in value and isinstance(value.get("title"), dict):
            yield value["title"]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from titles_in(part)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("¿Más que AYER?", "mas que ayer", 1.0),
        ("هَلْ نِمْتَ", "هل نمـت", 1.0),
        ("Sleep at work?", "At work: sleep?", 1.0),
        ("Did you ste\u00adal mo\u200bney?", "Did you steal money?", 1.0),
        ("هل زرت مدرسة كبرى؟", "هل زرت مدرسه كبري", 1.0),
        ("", "Why?", 0.0),
        ("?!", "…", 0.0),
    ],
)
def test_case_accents_punctuation_and_order_do_not_count(first, second, expected):
    assert similarity(first, second) == pytest.approx(expected)
