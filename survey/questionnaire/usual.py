"""What a researcher need not write: the labels of usual options, and a privacy to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from survey.catalogue import SOURCE, say
from survey.questionnaire.designs import CHOICES, DESIGNS, PRIVACY
from survey.questionnaire.question import NONE_ID, NOT_APPLICABLE_ID, OPT_OUT_ID
from survey.questionnaire.raw import special_in

USUAL = {
    NONE_ID: "option.noneOfThese",
    NOT_APPLICABLE_ID: "option.doesNotApply",
    OPT_OUT_ID: "option.preferNotToSay",
}


USUAL_RATIO = 3
"""The most that a report of a question multiplies odds by when nobody has chosen yet."""

USUAL_EPSILON = "1.098"
"""ln 3 in thousandths, rounded down: the same for designs that are stated by epsilon."""


def with_usual_privacy(question: Mapping[str, Any]) -> dict[str, Any]:
    """A question whose privacy is stated, by the usual one when it was not.

    With generalized randomized response of k options p = 3/(k+2), for then p/q = 3: 3/5 for
    yes/no with "prefer not to say".

    >>> with_usual_privacy({"type": "yes_no"})["truth_probability"]
    '3/5'
    """
    design = DESIGNS.get(str(question.get("mechanism", "grr")))
    states_itself = design is not None and design.states_itself
    if states_itself or any(way in question for way in PRIVACY):
        return dict(question)
    k = _ordinary(question) + len(special_in(question))
    if question.get("type") in CHOICES and question.get("mechanism", "grr") == "grr" and k >= 2:
        return {**question, "truth_probability": f"{USUAL_RATIO}/{k + USUAL_RATIO - 1}"}
    return {**question, "epsilon": USUAL_EPSILON}


def _ordinary(question: Mapping[str, Any]) -> int:
    """How many options are answers, as far as that can be said already."""
    if question.get("type") == "yes_no":
        return 2
    low, high = question.get("low"), question.get("high")
    if isinstance(low, int) and isinstance(high, int):
        return max(high - low + 1, 0)
    return len(question.get("options", ()))


def with_usual_labels(question: Any, language: str) -> Any:
    """A question whose unwritten labels are in a language; in the source's they are already."""
    if not isinstance(question, Mapping) or language == SOURCE:
        return question
    labels = {
        name: say(language, key)
        for name, key in USUAL.items()
        if question.get(name, _is_there(name, question)) is True
    }
    yes_no = question.get("type") == "yes_no" and "options" not in question
    return {**question, **labels, **({"options": _yes_no(language)} if yes_no else {})}


def _is_there(name: str, question: Mapping[str, Any]) -> bool:
    """Whether an option is there when nothing is written of it."""
    return name == OPT_OUT_ID or (name == NONE_ID and question.get("type") == "multiple_choice")


def _yes_no(language: str) -> list[dict[str, str]]:
    return [{"id": name, "label": say(language, f"option.{name}")} for name in ("yes", "no")]
