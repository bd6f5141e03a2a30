"""The JSON Schema of definition files, by which editors complete keys and mark mistakes.

It is generated from the models that check definitions. Some mistakes depend on several values, such
as two questions with one id or a privacy stated twice; only `survey check` finds these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from survey.questionnaire.definition import Survey
from survey.questionnaire.designs import PRIVACY
from survey.questionnaire.kinds.question import CommonFields
from survey.questionnaire.texts import LANGUAGE_PATTERN, LINE, TEXTS
from survey.questionnaire.validation import INHERITED

DIALECT = GenerateJsonSchema.schema_dialect

ANNOTATIONS = ("description", "default")

Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Leave out titles that repeat keys, and defaults that JSON does not have: fractions."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def str_schema(self, schema: Any) -> Schema:
        """Return the schema of a text, which is checked without the blanks around it."""
        return {key: value for key, value in super().str_schema(schema).items() if value != LINE}


@cache
def definition_schema() -> Schema:
    """Return the JSON Schema of a definition file in TOML or JSON; nobody may change it.

    A date is a string in JSON and a date in TOML.
    """
    schema = Survey.model_json_schema(schema_generator=_Generator)
    definitions = schema.pop("$defs")
    page_questions = definitions["Page"]["properties"]["questions"]
    shared = CommonFields.model_json_schema(schema_generator=_Generator)["properties"]
    # A yes_no question has its options already.
    definitions["ChoiceQuestion"]["required"].remove("options")
    schema["properties"] |= {
        "$schema": {"type": "string", "description": "Address of this schema, for editors."},
        # The short forms, which `validation.expand` accepts.
        "questions": page_questions,
        **{name: shared[name] for name in (*PRIVACY, *INHERITED)},
    }
    schema["required"].remove("pages")
    schema["oneOf"] = [{"required": ["pages"]}, {"required": ["questions"]}]
    return {
        "$schema": DIALECT,
        **_in_languages(schema),
        "title": "Survey definition",
        "description": "A survey whose answers are randomized on the respondents' devices.",
        "$defs": {name: _in_languages(part) for name, part in definitions.items()},
    }


def _in_languages(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of an object whose texts may be tables of languages."""
    properties = {
        name: _in_any_language(part) if name in TEXTS else part
        for name, part in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _in_any_language(part: Schema) -> Schema:
    """Return the schema of a text, or of a table of languages, each with such a text."""
    text = {key: value for key, value in part.items() if key not in ANNOTATIONS}
    table = {
        "type": "object",
        "propertyNames": {"pattern": LANGUAGE_PATTERN},
        "additionalProperties": text,
        "minProperties": 1,
    }
    return {"anyOf": [text, table], **{key: part[key] for key in ANNOTATIONS if key in part}}
