"""Nearly equal questions: the similarity of two texts, and the similar questions of surveys.

Several wordings of one question reveal more than each label says. The comparison sees letters and
words, not meaning: it finds rewordings that share most words, in any language with spaces between
words, and misses paraphrases with other words. It also flags the items of a battery, such as "How
satisfied are you with …?", which share most words but ask about different things.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from survey.mechanism.channel import Floats, Integers
from survey.questionnaire.definition import Definition, Survey
from survey.questionnaire.kinds import BaseQuestion, PublishedQuestion

AnyQuestion = BaseQuestion | PublishedQuestion

NEARLY_EQUAL = 0.7
"""From this similarity on, researchers are warned. Chosen on the lists in
`tests/questionnaire/rewordings.py`, which also states what it finds and misses."""

SHORT = 20
"""Letters and digits below which a text shares too few trigrams with others to judge by them."""

WORDS_RAISE = 0.1
"""Maximum by which common words raise the similarity above that of the trigrams."""

METHOD = (
    "Capital letters, accents and punctuation are ignored. The similarity is the mean of two "
    "shares: that of the groups of three letters, and that of the words, which the texts have in "
    "common; long words count more. The words raise it by at most 10 points, so that a short "
    f"question within a long one does not count. The warning begins at {NEARLY_EQUAL:.0%}. If a "
    f"text has fewer than {SHORT} letters and digits, one of the two must also have all words of "
    "the other. The comparison does not recognize different words with the same meaning, and often "
    "misses rewordings in scripts without spaces between words."
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
    return float(similarities([first], [second])[0, 0])


def similarities(first: Sequence[str], second: Sequence[str]) -> Floats:
    """Return the `similarity` of each text in `first` to each text in `second`.

    The result has the shape (len(first), len(second)).
    """
    profiles = [[_profile(text) for text in texts] for texts in (first, second)]
    trigrams = [[profile.trigrams for profile in side] for side in profiles]
    words = [[profile.words for profile in side] for side in profiles]
    norms = np.multiply.outer(
        *(np.sqrt([vector.squared_norm for vector in side]) for side in trigrams)
    )
    # Rounding errors must not raise a cosine above 1.
    cosines = np.minimum(_products(*trigrams) / np.maximum(norms, 1), 1)
    smaller = np.minimum.outer(*([vector.squared_norm for vector in side] for side in words))
    means = (cosines + _products(*words) / np.maximum(smaller, 1)) / 2
    n_words = np.minimum.outer(*([len(vector.keys) for vector in side] for side in words))
    has_words = (n_words >= 2) & (smaller > 0)
    return np.where(has_words, np.minimum(means, cosines + WORDS_RAISE), cosines)


def nearly_equal(first: Sequence[str], second: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each text in `first` is nearly equal to each text in `second`.

    Short texts differ plainly in a single word, such as "Yes, once" and "Yes, twice": one must have
    all words of the other. Texts of a single word, or without spaces, are compared as usual.

    >>> nearly_equal(["1 to 2", "Do you smoke?"], ["2 to 3", "Do you smoke now?"]).tolist()
    [[False, False], [False, True]]
    """
    profiles = [[_profile(text) for text in texts] for texts in (first, second)]
    bags = [[profile.bag for profile in side] for side in profiles]
    n_words = np.minimum.outer(*([len(bag.keys) for bag in side] for side in bags))
    n_letters = np.minimum.outer(*([profile.n_letters for profile in side] for side in profiles))
    is_short = (n_letters < SHORT) & (n_words >= 2)
    contains = _products(*bags) >= n_words
    return (similarities(first, second) >= NEARLY_EQUAL) & (contains | ~is_short)


@dataclass(frozen=True)
class _Vector:
    """The parts of a text: distinct keys, their integer values, and the sum of their squares."""

    keys: Integers
    values: Integers
    squared_norm: int


@dataclass(frozen=True)
class _Profile:
    """The counts of a text's trigrams, and for each word the square root of its weight, and 1."""

    trigrams: _Vector
    words: _Vector
    bag: _Vector
    n_letters: int


def _products(first: Sequence[_Vector], second: Sequence[_Vector]) -> Floats:
    """Return the inner product of each vector in `first` with each vector in `second`.

    Single precision is exact below 2^24; a text of n letters has products of at most n^2.
    """
    # Add the unused key 0, so that there is at least one column.
    columns = np.unique(np.concatenate([[0], *(vector.keys for vector in first)]))
    return (_matrix(first, columns) @ _matrix(second, columns).T).astype(np.float64)


def _matrix(vectors: Sequence[_Vector], columns: Integers) -> NDArray[np.float32]:
    """Return the values of the keys `columns`, one row per vector."""
    keys, values = (
        np.concatenate([getattr(vector, name) for vector in vectors]) for name in ("keys", "values")
    )
    rows = np.repeat(np.arange(len(vectors)), [len(vector.keys) for vector in vectors])
    column_indexes = np.searchsorted(columns, keys)
    is_column = columns.take(column_indexes, mode="clip") == keys
    matrix = np.zeros((len(vectors), len(columns)), np.float32)
    matrix[rows[is_column], column_indexes[is_column]] = values[is_column]
    return matrix


class _Letters(dict[int, str | None]):
    """The letter that each character counts as; None for characters that do not count."""

    def __missing__(self, code: int) -> str | None:
        # Marks (M) are accents and Arabic vowel signs; format characters (Cf) are soft hyphens,
        # joiners and zero-width spaces.
        category = unicodedata.category(chr(code))
        self[code] = None if category.startswith("M") or category == "Cf" else chr(code)
        return self[code]


# Remove the tatweel, which only stretches a word; treat the letters of each other pair as equal,
# because writers interchange them.
_LETTERS = _Letters({ord("ـ"): None, ord("ة"): "ه", ord("ى"): "ي"})


@lru_cache(maxsize=4096)
def _profile(text: str) -> _Profile:
    plain = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    listed = re.findall(r"[^\W_]+", plain)
    # 64-bit hashes stand for the words, because numpy compares integers fast.
    words = {hash(word): max(len(word) - 2, 0) for word in listed}
    return _Profile(
        trigrams=_vector(*_trigrams(listed)),
        words=_vector([*words], [*words.values()]),
        bag=_vector([*words], [1] * len(words)),
        n_letters=sum(map(len, listed)),
    )


def _vector(keys: ArrayLike, values: ArrayLike) -> _Vector:
    integers = np.array(values, np.int64)
    return _Vector(np.array(keys, np.int64), integers, int(integers @ integers))


def _trigrams(words: Sequence[str]) -> tuple[Integers, Integers]:
    """Return the distinct trigrams of the words, with a space on either side, and their counts."""
    # Separate words by two spaces, so that a trigram across two words has a space in the middle and
    # is dropped.
    spaced = f" {'  '.join(words)} ".encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(spaced, np.uint32).astype(np.int64)
    first, second, third = letters[:-2], letters[1:-1], letters[2:]
    space = ord(" ")
    is_inside = (second != space) | ((first != space) & (third != space))
    # A character has 21 bits.
    return np.unique((first << 42 | second << 21 | third)[is_inside], return_counts=True)


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


def similar_sets(
    questions: Sequence[AnyQuestion], texts: Texts = NO_TEXTS
) -> list[list[AnyQuestion]]:
    """Return the sets of nearly equal questions of one survey, each of two questions or more.

    Each question of a set is nearly equal to another one of the set with which it shares no topic.
    """
    sets = {i: [i] for i in range(len(questions))}
    for i, j in _similar_indexes(questions, questions, texts, texts):
        shares_topic = questions[i].topic and questions[i].topic == questions[j].topic
        if i < j and not shares_topic and sets[i] is not sets[j]:
            sets[i] += sets[j]
            sets |= dict.fromkeys(sets[j], sets[i])
    distinct = {id(members): members for members in sets.values() if len(members) > 1}
    return [[questions[i] for i in sorted(members)] for members in distinct.values()]


def similar_to_others(
    questions: Sequence[AnyQuestion],
    others: Sequence[AnyQuestion],
    texts: Texts = NO_TEXTS,
    texts_of_others: Texts = NO_TEXTS,
) -> list[tuple[AnyQuestion, AnyQuestion]]:
    """Return the pairs of a question and a nearly equal one of another survey.

    Topics do not matter here, because respondents never see a joint figure for two surveys.
    """
    indexes = _similar_indexes(questions, others, texts, texts_of_others)
    return [(questions[i], others[j]) for i, j in indexes]


def _similar_indexes(
    questions: Sequence[AnyQuestion],
    others: Sequence[AnyQuestion],
    texts: Texts,
    texts_of_others: Texts,
) -> list[tuple[int, int]]:
    """Return the index pairs of questions that are nearly equal in a common language.

    The texts in the surveys' own languages are always compared.
    """
    if not questions or not others:
        return []
    text_pairs = {(tuple(q.text for q in questions), tuple(q.text for q in others))} | {
        (
            tuple(texts[language].get(q.id, "") for q in questions),
            tuple(texts_of_others[language].get(q.id, "") for q in others),
        )
        for language in texts.keys() & texts_of_others.keys()
    }
    similar = [np.argwhere(nearly_equal(*pair)) for pair in text_pairs]
    return sorted({(i, j) for pairs in similar for i, j in pairs.tolist()})
