"""Earlier answers in later texts: "How long do you travel to {job|your work}?".

The device replaces the placeholder with the label or value of the answer to the question `job`. It
shows the text after the bar if that question has no answer. So do all places without true answers:
results, downloads and "what was sent". In such texts, "{{" and "}}" mean braces.

For the privacy loss, piping does not link questions. The answer to the earlier question changes
the words on the screen, but neither the questions asked nor the reports on them: the report of the
later question depends on its own answer alone and bounds what anyone can learn about that answer.
If both answers are related, as answers about one topic are, the factors of the topic and of the
whole report bound what they reveal together, as without piping. Skip logic differs, because it
decides the later answer: a skipped question counts as "does not apply".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

PIPED_TEXTS = ("text", "help")
"""The texts of a question that can contain earlier answers, unless it is a matrix."""

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\|([^{}|]*)\}")
_TOKEN = re.compile(rf"\{{\{{|\}}\}}|{_PLACEHOLDER.pattern}|[{{}}]|[^{{}}]+")
_NAMED = re.compile(r"(?<!\{)\{([a-z][a-z0-9_]*)(?:\|[^{}|]*)?\}(?!\})")
_WITHOUT_FALLBACK = re.compile(r"(?<!\{)\{([a-z][a-z0-9_]*)\}(?!\})")


class Placeholder(NamedTuple):
    """The place of an earlier answer in a text: its question's id, and the words for no answer."""

    question: str
    fallback: str


def is_piped(text: str) -> bool:
    """Return whether a text contains a placeholder; in other texts, braces have no meaning.

    >>> is_piped("At {job|your work}?"), is_piped("Use {braces} or a|b")
    (True, False)
    """
    return _PLACEHOLDER.search(text) is not None


def parse_piped(text: str) -> list[str | Placeholder]:
    """Return the parts of a text with placeholders; raises ValueError for a single brace.

    >>> parse_piped("At {job|your work} {{now}}?")
    ['At ', Placeholder(question='job', fallback='your work'), ' {now}?']
    """
    parts: list[str | Placeholder] = []
    for token in _TOKEN.finditer(text):
        if token[1]:
            parts.append(Placeholder(token[1], token[2].strip()))
            continue
        if token[0] in ("{", "}"):
            raise ValueError(
                f'has a single "{token[0]}"; write {{{{ and }}}} for braces in a text with an '
                "earlier answer, and {question_id|your words} for the answer"
            )
        plain = token[0][0] if token[0] in ("{{", "}}") else token[0]
        if parts and isinstance(parts[-1], str):
            parts[-1] += plain
        else:
            parts.append(plain)
    return parts


def fallback_text(text: str) -> str:
    """Return a text with the words that replace missing answers.

    >>> fallback_text("At {job|your work}?"), fallback_text("Use {braces}")
    ('At your work?', 'Use {braces}')
    """
    if not is_piped(text):
        return text
    return "".join(part if isinstance(part, str) else part.fallback for part in parse_piped(text))


def sources_of(text: str) -> list[str]:
    """Return the ids of the questions whose answers a text contains, in order."""
    if not is_piped(text):
        return []
    return [part.question for part in parse_piped(text) if isinstance(part, Placeholder)]


def misplaced_in(text: str, ids: Collection[str]) -> str:
    """Return what names an earlier answer in a text that cannot show one, or an empty string.

    Only the ids of this survey's questions count: other braces are the writer's own.

    >>> misplaced_in("In {job|your work}", ["job"]), misplaced_in("{x|x > 0} or {on}", ["job"])
    ('{job|your work}', '')
    """
    return next((match[0] for match in _NAMED.finditer(text) if match[1] in ids), "")


def mistakes_in(text: str, ids: Collection[str]) -> Iterator[str]:
    """Yield the mistakes in a text's placeholders; `ids` are those of the survey's questions."""
    for match in _WITHOUT_FALLBACK.finditer(text):
        if match[1] in ids:
            yield (
                f"must say what to show if {match[1]} has no answer: write "
                f"{{{match[1]}|your words}}"
            )
    if not is_piped(text):
        return
    try:
        parts = parse_piped(text)
    except ValueError as error:
        yield str(error)
        return
    for part in parts:
        if isinstance(part, Placeholder) and not part.fallback:
            yield (
                f"must say what to show if {part.question} has no answer: write "
                f"{{{part.question}|your words}}"
            )
