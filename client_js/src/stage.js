/**
 * The one place where views appear, and the toolbar above it.
 */

import { button, element } from "./dom.js";
import { say } from "./words.js";

/**
 * @typedef {import("./dom.js").View} View
 * @typedef {ReturnType<typeof createStage>} Stage
 */

/**
 * The one place views appear: each replaces the last, names the document and takes focus.
 *
 * @param {HTMLElement} main
 */
export function createStage(main) {
  /** @type {() => View} */
  let last;
  return {
    /** @param {() => View} build  makes the view, again whenever the language changes */
    show(build) {
      last = build;
      const { content, title, focus } = build();
      main.replaceChildren(content);
      document.title = title;
      const target = focus ?? content.querySelector("h1");
      window.scrollTo(0, 0);
      target?.focus({ preventScroll: focus === undefined });
    },
    /** Show the current view again, in another language, and leave the focus where it is. */
    refresh() {
      const { content, title } = last();
      const entered = [...main.querySelectorAll("input")];
      main.replaceChildren(content);
      document.title = title;
      // What was entered and is no answer, too many ticks or half a number, is nobody's to forget.
      main.querySelectorAll("input").forEach((input, i) => {
        if (entered[i]) input.checked = entered[i].checked;
        if (entered[i]) input.value = entered[i].value;
      });
    },
    clear() {
      main.replaceChildren();
    },
  };
}

/**
 * What stands above every view: the choice of a language, and the way out.
 *
 * @param {object} of
 * @param {readonly string[]} of.languages
 * @param {string} of.language
 * @param {(language: string) => void} of.onLanguage
 * @param {() => void} of.onExit
 */
export function toolbar({ languages, language, onLanguage, onExit }) {
  const chooser = languages.length < 2 ? [] : [languageChooser(languages, language, onLanguage)];
  return [...chooser, button(say("exit.button"), onExit, { class: "button exit" })];
}

/**
 * @param {readonly string[]} languages
 * @param {string} language
 * @param {(language: string) => void} onLanguage
 */
function languageChooser(languages, language, onLanguage) {
  const select = element("select", { autocomplete: "off" });
  for (const each of languages) {
    const option = element("option", { value: each, lang: each }, nameOf(each));
    option.selected = each === language;
    select.append(option);
  }
  select.addEventListener("change", () => onLanguage(select.value));
  return element(
    "label",
    { class: "language" },
    element("span", {}, say("language.choose")),
    select,
  );
}

/** A language by the name that its speakers have for it. @param {string} language */
function nameOf(language) {
  const names = new Intl.DisplayNames([language], { type: "language" });
  const name = names.of(language) ?? language;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}
