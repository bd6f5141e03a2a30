"""Write the generated parts of the handbook's reference, and its drawings, from the code.

Run as `python -m tests.handbook.write`. A part is everything between `<!-- generated: NAME -->` and
`<!-- end -->`; the text around it is written by hand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, get_args

import click

from survey.api.endpoints import OPERATIONS, PARAMETERS
from survey.api.openapi import PREFIX
from survey.cli import main as command_line
from survey.estimator import margin_of
from survey.handbook import FOLDER
from survey.ops.health import Check, Gauges
from survey.ops.metrics import ErrorTime, Operation, WorkerExits
from survey.questionnaire.drafts.form_messages import LEVELS, level_name
from survey.questionnaire.kinds import WRITTEN_KINDS
from survey.questionnaire.kinds.base import Kind
from survey.questionnaire.kinds.question import CommonFields
from survey.questionnaire.privacy_loss import (
    STRONG_UP_TO,
    WEAK_QUESTION_ABOVE,
    WEAK_REPORT_ABOVE,
    Strength,
)
from survey.questionnaire.schema import definition_schema
from survey.results.crosstab.table import CrosstabRow
from survey.results.difference.table import DifferenceRow
from survey.results.estimates.table import EstimateRow
from survey.results.exports.csv import column_names
from survey.results.regression.table import RegressionRow
from survey.results.weighting.table import WeightingRow
from survey.settings import VARIABLES, Settings
from tests.handbook.drawings import DRAWINGS

MARKED = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)

Schema = Mapping[str, Any]


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([_cell(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def settings() -> str:
    defaults = Settings()
    rows = []
    for name, variable in VARIABLES.items():
        value = getattr(defaults.caps if variable.of_caps else defaults, variable.field)
        rows.append([code(name), variable.meaning, code(value) or variable.unset])
    return table(["variable", "meaning", "default"], rows)


def metrics() -> str:
    tables = dict.fromkeys(("release_times", "failures", "n_damaged"), dict)
    store = SimpleNamespace(surveys=list, **tables)
    gauges = Gauges(store, "", lambda: {"disk": Check(ok=True)})
    operation = Operation(Settings(backups="backups"), ErrorTime(), WorkerExits(), {})
    rows = [
        [code(f"{metric.name}_total" if metric.type == "counter" else metric.name), text]
        for metric in (*gauges.collect(), *operation.collect())
        if (text := metric.documentation)
    ]
    return table(["metric", "meaning"], rows)


def commands() -> str:
    """Return each command with its usage, its help and its options."""
    return "\n".join(_command(name, command) for name, command in _commands(command_line))


def _commands(group: click.Group, prefix: str = "survey") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    help_text = re.sub(r"(?m)^ +", "", (command.help or "").replace("\b\n", ""))
    options = [
        record
        for parameter in command.params
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    rows = ([code(option), text] for option, text in options)
    listed = f"\n{table(['option', 'meaning'], rows)}" if options else ""
    return f"### {name}\n\n    {usage}\n\n{help_text.strip()}\n{listed}"


def keys(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> str:
    """Return a table of the keys of an object of a definition."""
    rows = [
        [code(name), part.get("description", ""), _values(part), _default(name, part, required)]
        for name, part in properties.items()
        if name != "type"
    ]
    return table(["key", "meaning", "values", "default"], rows)


def _default(name: str, part: Schema, required: Iterable[str]) -> str:
    if name in required:
        return "required"
    default = part.get("default")
    return "" if default in (None, "", [], {}) else code(str(default).lower())


def _values(part: Schema) -> str:
    """Return what a key can hold, in words.

    >>> _values({"type": "integer", "minimum": 1}), _values({"enum": ["", "day"]})
    ('whole number from 1', '`day`')
    """
    if "enum" in part:
        return ", ".join(code(value) for value in part["enum"] if value)
    if "const" in part:
        return code(part["const"])
    if "$ref" in part:
        return _object(part)
    if "anyOf" in part or "oneOf" in part:
        return _alternatives(part)
    if part.get("type") == "array":
        return f"list of {_items(part['items'])}{_range(part, 'Items')}"
    if "examples" in part:
        return f"text such as {' or '.join(code(example) for example in part['examples'])}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    name = names.get(part.get("type", ""), part.get("type", ""))
    if part.get("format") == "date":
        name = "day"
    limits = _range(part, "imum")
    most = f" of at most {part['maxLength']:,} characters" if "maxLength" in part else ""
    return f"{name}{limits}{most}"


def _items(part: Schema) -> str:
    return "texts" if part.get("type") == "string" else _object(part)


def _object(part: Schema) -> str:
    """Return a link to the keys of an object."""
    name = str(part.get("$ref", "")).rpartition("/")[2]
    return OBJECT_LINKS.get(name, "[questions](question-types.md)")


def _alternatives(part: Schema) -> str:
    alternatives = [
        other
        for other in part.get("anyOf", part.get("oneOf", ()))
        if other.get("type") != "null" and other.get("const") != ""
    ]
    # A text may be a table of languages everywhere; the page says so once.
    alternatives = [other for other in alternatives if "propertyNames" not in other]
    return " or ".join(dict.fromkeys(_values(other) for other in alternatives))


def _range(part: Schema, ending: str) -> str:
    low, high = part.get(f"min{ending}"), part.get(f"max{ending}")
    if ending == "Items":
        ends = [f"{end:,}" for end in (low, high) if end is not None]
        return f" ({' to '.join(ends)})" if len(ends) == 2 else ""
    if low is not None and high is not None and high - low < 10**9:
        return f" from {low:,} to {high:,}"
    return f" from {low:,}" if low is not None and high is None else ""


OBJECT_LINKS = {
    "Page": "[pages](#pages)",
    "Option": "[options](question-types.md#options)",
    "Row": "[rows](question-types.md#rows)",
    "AskIf": "[condition](question-types.md#conditions)",
    "Together": "[tables](#questions-that-belong-together)",
}


def survey_keys() -> str:
    schema = definition_schema()
    properties = {name: part for name, part in schema["properties"].items() if name != "$schema"}
    return keys(properties, schema["required"])


def object_keys(name: str) -> Callable[[], str]:
    def write() -> str:
        schema = definition_schema()["$defs"][name]
        return keys(schema["properties"], schema.get("required", ()))

    return write


def common_keys() -> str:
    schema = definition_schema()["$defs"]["ChoiceQuestion"]
    shared = {name: schema["properties"][name] for name in _common() if name != "type"}
    return keys(shared, schema["required"])


def _common() -> list[str]:
    return list(CommonFields.model_fields)


def question_types() -> str:
    """Return each type of question with the keys that only it has, and its mechanisms."""
    schema = definition_schema()
    mapping = schema["$defs"]["Page"]["properties"]["questions"]["items"]["discriminator"][
        "mapping"
    ]
    return "\n".join(
        _question_type(name, schema["$defs"][mapping[name].rpartition("/")[2]])
        for name in WRITTEN_KINDS
    )


def _question_type(name: str, schema: Schema) -> str:
    kind = WRITTEN_KINDS[name]
    added = {key: part for key, part in schema["properties"].items() if key not in _common()}
    mechanisms = ", ".join(code(mechanism) for mechanism in kind.mechanisms)
    recommends = type(kind).recommend_mechanism is not Kind.recommend_mechanism
    default = "the one with the smallest error" if recommends else code(kind.mechanism)
    return (
        f"### {name}\n\n"
        f"{kind.label}. Mechanisms: {mechanisms}; by default {default}.\n\n"
        f"{keys(added, schema.get('required', ()))}"
    )


def operations() -> str:
    rows = [
        [
            code(PREFIX + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", operation.path)),
            operation.summary,
            operation.scope or "no token",
            ", ".join(code(media_type) for media_type in operation.answers),
            ", ".join(code(name) for name in operation.query),
        ]
        for operation in OPERATIONS.values()
    ]
    return table(["address", "content", "scope", "media types", "parameters"], rows)


def parameters() -> str:
    rows = [
        [code(name), parameter.meaning, "yes" if parameter.required else ""]
        for name, parameter in PARAMETERS.items()
    ]
    return table(["parameter", "meaning", "required"], rows)


def columns(row_type: type[Any]) -> Callable[[], str]:
    return lambda: ", ".join(code(name) for name in column_names(row_type)) + "\n"


def sample_margins() -> str:
    """Return the margins of a yes/no question, without opt-outs, by epsilon and responses."""
    numbers = (500, 1_000, 2_000, 5_000, 10_000)
    rows = []
    for epsilon in (0.5, math.log(3), 2.0):
        margins = [margin_of(n, epsilon=epsilon).margin for n in numbers]
        name = "1.1 (standard: a factor of 3)" if epsilon == math.log(3) else f"{epsilon:g}"
        rows.append([name, *(f"±{100 * margin:.1f}" for margin in margins)])
    rows.append(["no randomization", *(f"±{196 * math.sqrt(0.25 / n):.1f}" for n in numbers)])
    return table(["epsilon", *(f"{n:,} responses" for n in numbers)], rows)


def protection_grades() -> str:
    """Return the range of factors of each word for protection."""
    strong, moderate, weak = get_args(Strength)
    at_most, question, report = STRONG_UP_TO, WEAK_QUESTION_ABOVE, WEAK_REPORT_ABOVE
    limits = [
        (strong, f"{at_most} or less", f"{at_most} or less"),
        (moderate, f"above {at_most}, up to {report}", f"above {at_most}, up to {question}"),
        (weak, f"above {report}, or any question or topic is {weak}", f"above {question}"),
    ]
    return table(["grade", "factor of a whole report", "factor of one question or topic"], limits)


def privacy_levels() -> str:
    return "".join(f"- {level_name(level)}\n" for level in LEVELS)


PARTS: Mapping[str, Callable[[], str]] = {
    "protection-grades": protection_grades,
    "privacy-levels": privacy_levels,
    "sample-margins": sample_margins,
    "settings": settings,
    "metrics": metrics,
    "commands": commands,
    "survey-keys": survey_keys,
    "page-keys": object_keys("Page"),
    "together-keys": object_keys("Together"),
    "common-keys": common_keys,
    "option-keys": object_keys("Option"),
    "row-keys": object_keys("Row"),
    "condition-keys": object_keys("AskIf"),
    "question-types": question_types,
    "operations": operations,
    "parameters": parameters,
    "estimate-columns": columns(EstimateRow),
    "crosstab-columns": columns(CrosstabRow),
    "difference-columns": columns(DifferenceRow),
    "weighting-columns": columns(WeightingRow),
    "regression-columns": columns(RegressionRow),
}


def written(text: str) -> str:
    """Return a page with its generated parts as the code has them now."""
    return MARKED.sub(lambda mark: f"{mark[1]}{PARTS[mark[2]]()}{mark[3]}", text)


def main() -> None:
    """Write the generated parts of all pages."""
    texts = {file: written(file.read_text(encoding="utf-8")) for file in FOLDER.rglob("*.md")}
    texts |= {FOLDER / "pictures" / name: drawing for name, drawing in DRAWINGS.items()}
    for file, text in sorted(texts.items()):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(FOLDER)}")


if __name__ == "__main__":
    main()
