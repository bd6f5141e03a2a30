"""Nearly equal questions: the similarity of two texts, and the similar questions of surveys.

Several wordings of one question reveal more than each label says. The comparison sees letters and
words, not meaning: it finds rewordings that share most words, in any language with spaces between
words, and misses paraphrases with other words.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion

AnyQuestion = BaseQuestion | PublishedQuestion

NEARLY_EQUAL = 0.7
"""From this similarity on, researchers are warned. Chosen on the lists in
`tests/questionnaire/rewordings.py`, which also states what it finds and misses."""

WORDS_RAISE = 0.1
"""Maximum by which common words raise the similarity above that of the trigrams."""

METHOD = (
    "Capital letters, accents and punctuation are ignored. The similarity is the mean of two "
    "shares: that of the groups of three letters, and that of the words, which the texts have in "
    "common; long words count more. The words raise it by at most 10 points, so that a short "
    f"question within a long one does not count. The warning begins at {NEARLY_EQUAL:.0%}. It "
    "cannot see that different words mean the same."
)
"""A description of the computation, for the pages that show its result."""


def similarity(first: str, second: str) -> float:
    """Return how similar two texts are, from 0 to 1; 1 for equal words in any order.

    The mean of the cosine of the counts of character trigrams within words, and of the overlap of
    the words. With w(x) = max(length - 2, 0)^2 as the weight of a word, the overlap is
    w(A and B) / min(w(A), w(B)): a text that contains the other has overlap 1. It raises the mean
    by at most `WORDS_RAISE` above the cosine, because "Do you smoke?" is not "How many cigarettes
    do you smoke a day?". A text of a single word, or in a script without spaces, is compared by
    trigrams alone.

    >>> round(similarity("Did you EVER fall asleep at work?", "Did you fall asleep, at work?"), 2)
    0.96
    >>> round(similarity("Did you fall asleep at work?", "Do you have children?"), 2)
    0.1
    """
    a, b = _profile(first), _profile(second)
    cosine = _cosine(a, b)
    if min(len(a.words), len(b.words)) < 2 or not min(a.weight, b.weight):
        return cosine
    overlap = _weight(a.words & b.words) / min(a.weight, b.weight)
    return min((cosine + overlap) / 2, cosine + WORDS_RAISE)


@dataclass(frozen=True)
class _Profile:
    """The parts of a text that are compared."""

    trigrams: Counter[str]
    words: frozenset[str]
    norm: float
    weight: int


@lru_cache(maxsize=4096)
def _profile(text: str) -> _Profile:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    # Marks are accents and Arabic vowel signs; the tatweel only stretches a word.
    plain = "".join(
        "" if character == "\u0640" or unicodedata.category(character).startswith("M")
        else character
        for character in decomposed
    )  # fmt: skip
    listed = re.sub(r"[\W_]+", " ", plain).split()
    trigrams = Counter(f" {word} "[i : i + 3] for word in listed for i in range(len(word)))
    words = frozenset(listed)
    norm = math.sqrt(sum(count**2 for count in trigrams.values()))
    return _Profile(trigrams, words, norm, _weight(words))


def _weight(words: Iterable[str]) -> int:
    """Return the weight of words; short words, mostly function words, count little."""
    return sum(max(len(word) - 2, 0) ** 2 for word in words)


def _cosine(a: _Profile, b: _Profile) -> float:
    if not a.norm or not b.norm:
        return 0.0
    shared = a.trigrams.keys() & b.trigrams.keys()
    return min(sum(a.trigrams[t] * b.trigrams[t] for t in shared) / (a.norm * b.norm), 1.0)


Pair = tuple[AnyQuestion, AnyQuestion]

Texts = Mapping[str, Mapping[str, str]]
"""The texts of a survey's questions: language, then question id, to text."""

NO_TEXTS: Texts = {}


def question_texts(survey: Survey | Definition) -> Texts:
    """Return the texts of all questions in all languages of a survey."""
    own = {question.id: question.text for question in survey.questions}
    if isinstance(survey, Survey):
        translations = {
            language: {question.id: question.text for question in translated.questions}
            for language, translated in survey.translations.items()
        }
        return {survey.language: own, **translations}
    texts: dict[str, Mapping[str, str]] = {survey.languages[0]: own}
    for language, form in json.loads(survey.canonical).get("translations", {}).items():
        translated = (question["text"] for page in form["pages"] for question in page["questions"])
        texts[language] = dict(zip(own, translated, strict=True))
    return texts


def similar_pairs(questions: Sequence[AnyQuestion], texts: Texts = NO_TEXTS) -> Iterator[Pair]:
    """Yield the pairs of nearly equal questions of one survey that share no topic."""
    return (
        (first, second)
        for first, second in combinations(questions, 2)
        if _is_similar(first, second, texts, texts)
    )


def similar_to_others(
    questions: Sequence[AnyQuestion],
    others: Sequence[AnyQuestion],
    texts: Texts = NO_TEXTS,
    texts_of_others: Texts = NO_TEXTS,
) -> Iterator[Pair]:
    """Yield the pairs of a question and a nearly equal one of another survey, without a topic."""
    return (
        (question, other)
        for question in questions
        for other in others
        if _is_similar(question, other, texts, texts_of_others)
    )


def _is_similar(first: AnyQuestion, second: AnyQuestion, of_first: Texts, of_second: Texts) -> bool:
    """Compare the texts in the surveys' own languages, and in every language that both have."""
    if first.topic and first.topic == second.topic:
        return False
    pairs = {(first.text, second.text)} | {
        (of_first[language].get(first.id, ""), of_second[language].get(second.id, ""))
        for language in of_first.keys() & of_second.keys()
    }
    return any(similarity(*pair) >= NEARLY_EQUAL for pair in pairs)
