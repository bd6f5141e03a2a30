"""Texts as a survey may hold them: trimmed, visible, nothing that steers a screen."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints

BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Characters that show nothing although Unicode calls them letters, marks or symbols."""


def _without_controls(text: str) -> str:
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text):
        raise ValueError("must not contain control characters")
    # They reorder what follows: a label could read as the opposite of what is counted.
    if re.search(r"[\u202a-\u202e\u2066-\u2069]", text):
        raise ValueError(
            "must not contain direction control characters (U+202A to U+202E, U+2066 to U+2069)"
        )
    return text


def _empty_if_invisible(text: str) -> str:
    return text if any(_is_visible(character) for character in text) else ""


def _is_visible(character: str) -> bool:
    return (
        unicodedata.category(character) not in ("Cc", "Cf", "Zl", "Zp", "Zs")
        and character not in BLANKS
        and not re.match(r"[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]", character)
    )


def _trimmed(value: Any) -> Any:
    return value.replace("\r\n", "\n").strip() if isinstance(value, str) else value


Text = Annotated[
    str,
    BeforeValidator(_trimmed),
    AfterValidator(_without_controls),
    AfterValidator(_empty_if_invisible),
]
Line = Annotated[Text, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\n]*$")]
Passage = Annotated[Text, StringConstraints(max_length=10_000)]
TRIAL = "trial-"
"""How the slugs of try-outs begin, and those of no survey."""


def _not_a_trial(slug: str) -> str:
    if slug.startswith(TRIAL):
        raise ValueError(f'short names that begin with "{TRIAL}" are those of try-outs')
    return slug


Slug = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60),
    AfterValidator(_not_a_trial),
]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Language = Annotated[
    # Language, script, region: a browser refuses a tag that is not well-formed.
    str,
    StringConstraints(pattern=r"^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$"),
]


class Frozen(BaseModel):
    """Base of all parts of a survey: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Option(Frozen):
    """One answer that can be chosen."""

    id: Identifier
    label: Line
