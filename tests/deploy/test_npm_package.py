"""The client as an npm package: its files, its types, and what an empty project does with it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from survey import __version__
from tests.conftest import ROOT

CLIENT = ROOT / "client_js"
PACKAGE = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))

USER = """
import {
  createOutbox, createUniformBelow, DefinitionError, drawBytes, loadDefinition, makeReport,
  NoRandomnessError, oddsFactor, OpeningError, openSurvey, perturb, questions, readDefinition,
  sendReport, sendUntilAnswered, thisDevice, totalRatio, UnansweredError,
} from "ldp-survey-client";
import type {
  Answer, Answers, Channel, Definition, Device, Entry, OnWaiting, OpenSurvey, Outbox, Question,
  UniformBelow,
} from "ldp-survey-client";
import { perturb as again, perturbJointly } from "ldp-survey-client/mechanism";
import { makeReport as make } from "ldp-survey-client/report";
import { createOutbox as create } from "ldp-survey-client/outbox";
import { AlreadyAnsweredError, privatize, UnsuitableFormError } from "ldp-survey-client/surveyjs";
import { Model } from "survey-core";

const channel: Channel = { kind: "subset_selection", k: 2, d: 1, T: 3, L: 1 };
const code: number | string = perturb(channel, 0, createUniformBelow(undefined));
const device: Device = { ...thisDevice(), storage: null };
const onWaiting: OnWaiting = (seconds, reason) => { const text: string = `${seconds} ${reason}`; };
export async function answer(link: string, form: object): Promise<Entry> {
  const survey: OpenSurvey = await openSurvey(link, device);
  const factor: string = oddsFactor(totalRatio(survey.definition));
  const asked: Question[] = questions(survey.definition);
  const answers: Answers = Object.fromEntries(asked.map(({ id }): [string, Answer] => [id, 0]));
  privatize(new Model(form), survey, { onWaiting, onSettled: (entry: Entry) => entry.state });
  return survey.outbox.read().state === "empty" ? survey.submit(answers) : survey.resume(onWaiting);
}
// @ts-expect-error: a form is a Model
export const wrong = (survey: OpenSurvey) => privatize({ pages: [] }, survey);
// @ts-expect-error: a channel has a kind
perturb({ k: 2 }, 0, createUniformBelow(undefined));
"""

RUN = """
import { readFileSync } from "node:fs";
import { perturb } from "ldp-survey-client/mechanism";
import * as whole from "ldp-survey-client";
import "ldp-survey-client/report";
import "ldp-survey-client/outbox";
import "ldp-survey-client/surveyjs";
const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
const reports = vectors.map(({ channel, truth, draws }) => {
  const values = draws.map(([, value]) => value);
  return perturb(channel, truth, () => values.shift());
});
console.log(JSON.stringify({ reports, isOne: whole.perturb === perturb }));
"""


def test_the_npm_package_has_the_version_of_the_python_package():
    assert PACKAGE["version"] == __version__


def modules(entry: Path) -> Iterator[Path]:
    """Yield a module and all that it imports."""
    text = entry.read_text(encoding="utf-8")
    yield entry
    for name in re.findall(r'^(?:import|export|\}) ?.*from "(\..*)";$', text, re.M):
        yield from modules((entry.parent / name).resolve())


@pytest.fixture(scope="module")
def pack(tmp_path_factory, node) -> tuple[Path, dict[str, Any]]:
    """Pack a copy of the client, whose types are generated; return the archive and npm's report."""
    assert (CLIENT / "node_modules/typescript").exists(), "run npm install in client_js"
    directory = tmp_path_factory.mktemp("npm")
    unpublished = shutil.ignore_patterns("node_modules", "types", "LICENSE")
    shutil.copytree(CLIENT, directory / "client_js", ignore=unpublished)
    shutil.copy(ROOT / "LICENSE", directory)
    (directory / "client_js/node_modules").symlink_to(CLIENT / "node_modules")
    output = run([*npm(node), "pack", "--json"], directory / "client_js")
    (report,) = json.loads(output[output.index("[\n") :])
    return directory / "client_js" / report["filename"], report


def npm(node: str) -> list[str]:
    """Return the command of the npm beside a Node."""
    return [node, str(Path(node).parents[1] / "lib/node_modules/npm/bin/npm-cli.js")]


def run(command: list[str], directory: Path) -> str:
    process = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.web
def test_the_package_contains_exactly_the_modules_of_its_exports_with_their_types(pack):
    exports = [CLIENT / entry["default"] for entry in PACKAGE["exports"].values()]
    needed = {module for export in exports for module in modules(export.resolve())}
    sources = {str(module.relative_to(CLIENT)) for module in needed}
    packed = {file["path"] for file in pack[1]["files"]}
    types = {path for path in packed if path.startswith("types/")}
    assert packed - types == {"LICENSE", "README.md", "package.json", *sources}
    typed = {f"types/{source.removesuffix('.js')}.d.ts" for source in sources}
    assert typed <= types
    # Types that the published modules name in comments may come from other modules of the client.
    others = {Path(path).name.removesuffix(".d.ts") for path in types - typed}
    assert others <= {path.stem for path in CLIENT.glob("src/*.js")}


@pytest.mark.web
def test_an_empty_project_type_checks_all_exports_and_gets_the_reports_of_the_vectors(
    pack, node, tmp_path
):
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    options = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts"]
    run([*npm(node), "install", *options, str(pack[0])], tmp_path)
    (tmp_path / "node_modules/survey-core").symlink_to(CLIENT / "node_modules/survey-core")
    (tmp_path / "user.ts").write_text(USER)
    compiler = [node, str(CLIENT / "node_modules/typescript/bin/tsc"), "--noEmit", "--strict"]
    target = ["--module", "nodenext", "--target", "es2022", "--types", ""]
    run([*compiler, *target, "user.ts"], tmp_path)
    (tmp_path / "run.mjs").write_text(RUN)
    vectors = ROOT / "tests/vectors/mechanism.json"
    result = json.loads(run([node, "run.mjs", str(vectors)], tmp_path))
    expected = [vector["report"] for vector in json.loads(vectors.read_text())]
    assert result == {"reports": expected, "isOne": True}


@pytest.mark.web
def test_the_adapter_passes_its_own_tests_with_the_real_survey_core(node):
    assert (CLIENT / "node_modules/survey-core").exists(), "run npm install in client_js"
    output = run([node, "--test", "--test-reporter=tap", "test/npm/surveyjs.test.js"], CLIENT)
    assert int(re.search(r"^# pass (\d+)$", output, re.M)[1]) > 30
