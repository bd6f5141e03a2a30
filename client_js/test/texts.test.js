import assert from "node:assert/strict";
import { test } from "node:test";
import { count, figure, pieces, say, sayOf, selectLanguage, setTexts } from "../src/texts.js";
import {
  availableWords,
  chooseWords,
  loadedLanguages,
  preferredLanguage,
  storeWords,
} from "../src/words.js";

const SOURCE = await import("node:fs").then(({ readFileSync }) =>
  readFileSync(new URL("../src/texts.js", import.meta.url), "utf8"),
);
const KEYS = SOURCE.match(/const KEYS = [^[]*\[([\s\S]*?)\]\)/)[1]
  .match(/"[^"]+"/g)
  .map(JSON.parse);

/** Return the page's texts: the changed ones, and for every other key a placeholder that names it. */
function texts(changes = {}) {
  return KEYS.map((key) => changes[key] ?? (key.startsWith("count.") ? ["one", "other"] : key));
}

/** A page that lists the words of these languages. */
function pageListing(...languages) {
  const metas = languages.map((language) => ({
    getAttribute: () => `${language} /client/words.${language}.json sha256-x`,
  }));
  return { querySelectorAll: () => metas };
}

test("a text contains its values unchanged", () => {
  setTexts("en", texts({ "question.page": "Page {at} of {of}", "question.wrong": "{question}!" }));
  assert.equal(say("question.page", { at: 2, of: 5 }), "Page 2 of 5");
  assert.equal(say("question.wrong", { question: "{question} $& <b>" }), "{question} $& <b>!");
});

test("an element as a value is copied to each place", () => {
  const element = { cloneNode: () => ({ copied: true }) };
  setTexts("en", texts({ "question.wrong": "“{question}”: {problem}, {question}" }));
  const parts = pieces("question.wrong", { question: element, problem: "no" });
  assert.deepEqual(parts, ["“", { copied: true }, "”: ", "no", ", ", { copied: true }, ""]);
  assert.notEqual(parts[1], parts[5]);
});

test("a value in the other writing direction is isolated", () => {
  setTexts("en", texts({ "question.wrong": "{question}: x" }));
  assert.equal(say("question.wrong", { question: "نعم" }), "\u2068نعم\u2069: x");
  setTexts("ar", texts({ "question.wrong": "{question}: x", "language.direction": "rtl" }));
  assert.equal(say("question.wrong", { question: "نعم" }), "نعم: x");
  assert.equal(say("question.wrong", { question: "Yes" }), "\u2068Yes\u2069: x");
});

test("counts use the language's plural forms", () => {
  setTexts("en", texts({ "count.surveys": ["{n} page", "{n} pages"] }));
  assert.deepEqual(
    [0, 1, 2, 1000000].map((n) => count("count.surveys", n)),
    ["0 pages", "1 page", "2 pages", "1000000 pages"],
  );
  setTexts("es", texts({ "count.surveys": ["{n} página", "{n} páginas"] }));
  assert.equal(count("count.surveys", 1000000), "1000000 páginas");
  setTexts("uk", texts({ "count.surveys": ["{n} сторінка", "{n} сторінки", "{n} сторінок"] }));
  assert.deepEqual(
    [1, 2, 5, 11, 21, 22].map((n) => count("count.surveys", n)),
    ["1 сторінка", "2 сторінки", "5 сторінок", "11 сторінок", "21 сторінка", "22 сторінки"],
  );
  setTexts("zh-Hans", texts({ "count.surveys": ["{n} 页"] }));
  assert.deepEqual(
    [1, 2].map((n) => count("count.surveys", n)),
    ["1 页", "2 页"],
  );
  const forms = ["zero", "one", "two", "few {n}", "many {n}", "other {n}"];
  const direction = { "language.direction": "rtl" };
  const six = Object.fromEntries(
    KEYS.filter((key) => key.startsWith("count.")).map((key) => [key, forms]),
  );
  setTexts("ar", texts({ ...six, ...direction }));
  assert.deepEqual(
    [0, 1, 2, 3, 11, 100].map((n) => count("count.surveys", n).replace(/[\u2068\u2069]/g, "")),
    ["zero", "one", "two", "few 3", "many 11", "other 100"],
  );
});

test("numbers are written as the language writes them", () => {
  for (const [language, written] of [
    ["en", "1,234.5"],
    ["es", "1.234,5"],
    ["pt", "1.234,5"],
    ["ar", "1,234.5"],
  ]) {
    setTexts(language, texts());
    assert.equal(figure("1,234.5"), written);
  }
});

test("the first available preferred language is used, or else the first language", () => {
  assert.equal(preferredLanguage(["en", "es"], ["es-MX", "en"]), "es");
  assert.equal(preferredLanguage(["en", "pt-BR"], ["pt"]), "pt-BR");
  assert.equal(preferredLanguage(["en", "pt", "pt-BR"], ["pt-BR"]), "pt-BR");
  assert.equal(preferredLanguage(["es", "en"], ["de", "fr"]), "es");
  assert.equal(preferredLanguage(["es"], []), "es");
  for (const tag of ["zh", "zh-CN", "zh-Hans-SG"])
    assert.equal(preferredLanguage(["en", "zh-Hans"], [tag]), "zh-Hans");
  for (const tag of ["zh-Hant", "zh-TW", "zh-HK"]) {
    assert.equal(preferredLanguage(["en", "zh-Hans"], [tag]), "en");
    assert.equal(preferredLanguage(["en", "zh-Hans", "zh-TW"], [tag]), "zh-TW");
  }
});

test("texts are in the chosen language, or in the survey's own", () => {
  const page = { documentElement: {} };
  storeWords([
    ["en", texts({ earlier: "Before" })],
    ["es", texts({ earlier: "Antes" })],
  ]);
  assert.deepEqual(loadedLanguages(), ["en", "es"]);
  selectLanguage(page, ["fr", "es-AR"]);
  assert.equal(say("earlier"), "Antes");
  assert.deepEqual(page.documentElement, { lang: "es", dir: "ltr" });
  selectLanguage(page, ["de"]);
  assert.equal(say("earlier"), "Before");
  assert.equal(page.documentElement.lang, "en");
});

test("a page with missing or foreign texts fails at once", () => {
  storeWords([["en", []]]);
  assert.throws(() => selectLanguage({ documentElement: {} }, ["en"]), RangeError);
  assert.throws(() => setTexts("en", ["one text"]), RangeError);
});

test("the words of all the survey's languages are chosen, its own first", () => {
  const files = availableWords(pageListing("en", "es", "pt"));
  assert.deepEqual(files[1], {
    language: "es",
    path: "/client/words.es.json",
    integrity: "sha256-x",
  });
  const chosen = (...languages) => chooseWords(files, languages).map(({ language }) => language);
  assert.deepEqual(chosen("pt-BR", "es"), ["pt", "es"]);
  assert.deepEqual(chosen("de", "fr", "es"), ["en", "es"]);
  assert.deepEqual(chosen(), ["en", "es", "pt"]);
});

test("a name from the server finds only texts of its group", () => {
  setTexts("en", texts());
  assert.equal(sayOf("refusal", "full"), "refusal.full");
  for (const name of ["", "nothing", "__proto__", "constructor", "heading"]) {
    assert.equal(sayOf("refusal", name), null);
  }
});
