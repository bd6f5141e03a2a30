"""A SurveyJS form with every supported element, and the survey that its import makes."""

from __future__ import annotations

import json
from typing import Any

from survey.questionnaire.imports import import_questionnaire
from survey.settings import Caps

FORM: dict[str, Any] = {
    "title": "Work",
    "pages": [
        {
            "name": "first",
            "elements": [
                {"type": "html", "name": "note", "html": "<p>Only this device sees answers.</p>"},
                {"type": "boolean", "name": "threatened", "title": "Threatened at work?"},
                {
                    "type": "radiogroup",
                    "name": "How often",
                    "choices": ["never", {"value": 2, "text": "Twice"}, "more often"],
                    "refuseText": "I would rather not say",
                    "showRefuseItem": True,
                },
                {
                    "type": "dropdown",
                    "name": "department",
                    "choices": ["Sales", "Care", "Kitchen"],
                },
                {"type": "buttongroup", "name": "shift", "choices": ["day", "night"]},
                {
                    "type": "checkbox",
                    "name": "harms",
                    "choices": ["noise", "dust", "stress"],
                    "showNoneItem": True,
                    "maxSelectedChoices": 2,
                },
                {
                    "type": "tagbox",
                    "name": "helpers",
                    "choices": ["union", "doctor"],
                    "showNoneItem": True,
                },
            ],
        },
        {
            "name": "second",
            "elements": [
                {"type": "rating", "name": "satisfied", "rateMin": 0, "rateMax": 4},
                {
                    "type": "matrix",
                    "name": "trust",
                    "title": "How much do you trust?",
                    "columns": ["little", "much"],
                    "rows": ["boss", "team"],
                },
                {"type": "ranking", "name": "wishes", "choices": ["pay", "time", "safety"]},
                {
                    "type": "text",
                    "inputType": "number",
                    "name": "hours",
                    "min": 0,
                    "max": 80,
                    "step": 0.5,
                },
                {"type": "slider", "name": "tired", "min": 0, "max": 10},
                {
                    "type": "text",
                    "inputType": "date",
                    "name": "since",
                    "min": "2024-01-01",
                    "max": "2024-03-01",
                },
                {
                    "type": "radiogroup",
                    "name": "reported",
                    "visibleIf": "{threatened} = true",
                    "choices": ["to boss", "to police", "to nobody"],
                },
            ],
        },
    ],
}
"""The form as the host's page has it."""


EPSILON = "0.4"
"""Small, so that everybody can be asked all questions."""


def definition_of(form: dict[str, Any], *, epsilon: str = EPSILON) -> dict[str, Any]:
    """Return the survey that the import of a form makes; nobody can decline `department`."""
    content = json.dumps(form)
    imported = import_questionnaire(content.encode(), "form.json", skip_logic=True)
    definition = imported.definition(Caps())
    definition.pop("questions_per_person", None)
    for page in definition["pages"]:
        for question in page["questions"]:
            question.pop("truth_probability", None)
            question["epsilon"] = epsilon
            question["prefer_not_to_say"] = question["id"] != "department"
    return definition
