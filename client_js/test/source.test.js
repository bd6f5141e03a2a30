/** Rules for the source: forbidden features, imports and the form of every module. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const SOURCE = new URL("../src/", import.meta.url);
const scripts = readdirSync(SOURCE).filter((name) => name.endsWith(".js"));
const read = (name) => readFileSync(new URL(name, SOURCE), "utf8");
const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\/|(?<=\s)\/\/.*$/gm, "");

const FORBIDDEN = {
  "another source of randomness": /Math\.random/,
  "a clock": /\bDate\b|performance\.now/,
  "console output": /\bconsole\b/,
  "text parsed as markup": /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser/,
  "code from text": /\beval\b|\bnew Function\b/,
  "a form": /["']form["']|FormData|\.submit\(/,
  "a cookie, session storage, or a page of the history with an address or an answer":
    /cookie(?!\.")|sessionStorage|history\.(?!replaceState\((null|\{ reloads)|state|go\(-|pushState\(at, ""\))/,
  "a style attribute": /\.style\b|["']style["']/,
  "what Safari 15 lacks": /\.at\(|hasOwn\(|structuredClone|AbortSignal\.timeout|^await /m,
};
for (const [what, pattern] of Object.entries(FORBIDDEN)) {
  test(`no module has ${what}`, () => {
    for (const name of scripts) assert.doesNotMatch(withoutComments(read(name)), pattern, name);
  });
}

test("only field mode has a database, a worker and its files", () => {
  const pattern = /indexedDB|\bcaches\b|serviceWorker/;
  const names = scripts.filter((name) => pattern.test(withoutComments(read(name))));
  assert.deepEqual(names, ["fieldwork-worker.js", "fieldwork.js"]);
});

test("every import is a file beside it: no dependency, no build step", () => {
  for (const name of scripts) {
    for (const [, from] of read(name).matchAll(/^(?:import|export|\}).* from "(.*)";$/gm)) {
      assert.ok(from.startsWith("./") && scripts.includes(from.slice(2)), `${name}: ${from}`);
    }
  }
});

/** Modules that must run anywhere: from a true answer to the bytes of the report and its numbers. */
const PURE = [
  ...["half-space.js", "mechanism.js", "weight-table.js", "ranking.js", "random.js", "answers.js"],
  ...["report.js", "privacy-loss.js"],
  "typed-number.js",
];

test("modules that make the report touch neither DOM nor network", () => {
  for (const name of PURE) {
    assert.doesNotMatch(
      withoutComments(read(name)),
      /document|(?<!")\bwindow\b|navigator|fetch|crypto\./,
      name,
    );
  }
});

test("modules that make the report import only each other", () => {
  for (const name of PURE) {
    for (const [, from] of read(name).matchAll(/^(?:import|export|\}) .*from "\.\/(.*)";$/gm)) {
      assert.ok(PURE.includes(from), `${name} imports ${from}`);
    }
  }
});

test("every module opens with a sentence", () => {
  for (const name of scripts) assert.match(read(name), /^\/\*\*\n \* ["A-Z].*/, name);
});

/** The modules that a page or a worker runs. */
const RUN = ["guard.js", "opening.js", "main.js", "fieldwork.js", "fieldwork-worker.js"];

test("no module but those that the page runs touches it when it is loaded", async () => {
  const others = scripts.filter((name) => !RUN.includes(name));
  for (const name of others) await import(new URL(name, SOURCE));
});
