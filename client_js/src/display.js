/**
 * The place where views appear, and the toolbar above it.
 */

import { button, element, isCalling, paragraph } from "./dom.js";
import { stopReading } from "./read-aloud.js";
import { count, say } from "./texts.js";

/**
 * @typedef {import("./dom.js").View} View
 * @typedef {ReturnType<typeof createDisplay>} Display
 */

/**
 * Create the display: each view replaces the last one, sets the document's title and takes the focus.
 *
 * @param {HTMLElement} main
 */
export function createDisplay(main) {
  /** @type {() => View} */
  let current;
  let isNew = false;
  // Ignore the second tap of a double tap on the previous view: it could press "Send".
  main.addEventListener(
    "click",
    (event) => {
      if (!(event.detail > 1)) isNew = false;
      if (isNew) {
        event.preventDefault();
        event.stopPropagation();
      }
    },
    true,
  );
  return {
    /** @param {() => View} build  builds the view, again whenever the language changes */
    show(build) {
      stopReading();
      isNew = true;
      current = build;
      const { content, title, focus } = build();
      main.replaceChildren(content);
      document.title = title;
      const target = focus ?? content.querySelector("h1");
      window.scrollTo(0, 0);
      target?.focus({ preventScroll: focus === undefined });
    },
    /** Show the current view again, in another language, and leave the focus where it is. */
    refresh() {
      stopReading();
      const { content, title } = current();
      const inputs = [...main.querySelectorAll("input")];
      main.replaceChildren(content);
      document.title = title;
      // Restore entries that are not valid answers, such as too many ticks or half a number.
      main.querySelectorAll("input").forEach((input, i) => {
        if (inputs[i]) input.checked = inputs[i].checked;
        if (inputs[i]) input.value = inputs[i].value;
        // Browsers fire no event for hidden inputs, but fields that show their values need one.
        if (input.type === "hidden") input.dispatchEvent(new Event("input"));
      });
    },
    clear() {
      stopReading();
      main.replaceChildren();
    },
  };
}

/**
 * Create the toolbar: the choice of language and "Leave now".
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
  for (const tag of languages) {
    const option = element("option", { value: tag, lang: tag }, nameOf(tag));
    option.selected = tag === language;
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

/** Return a language's name in that language. @param {string} language */
function nameOf(language) {
  const names = new Intl.DisplayNames([language], { type: "language" });
  const name = names.of(language) ?? language;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}

/** Seconds until the page asks whether somebody is there, and from then until it restarts. */
const IDLE_SECONDS = { ask: 120, go: 60 };

/**
 * Restart after a pause, so that nobody finds the answers of a person who left.
 *
 * @param {typeof globalThis & Window} window
 * @param {object} of
 * @param {() => boolean} of.canRestart  whether no report would be lost
 * @param {() => void} of.onRestart
 */
export function restartWhenIdle(window, { canRestart, onRestart }) {
  const attributes = {
    ...{ class: "idle", role: "alertdialog" },
    ...{ "aria-labelledby": "idle-heading", "aria-describedby": "idle-text" },
  };
  const notice = element("dialog", attributes);
  let timer = 0;

  function ask() {
    // Without support for dialogs the page restarts at once.
    if (!notice.showModal) return onRestart();
    const time = count("count.seconds", IDLE_SECONDS.go);
    notice.replaceChildren(
      element("h2", { id: "idle-heading" }, say("idle.heading")),
      element("p", { id: "idle-text" }, say("idle.text", { time })),
      button(say("idle.button"), () => notice.close()),
    );
    window.document.body.append(notice);
    notice.showModal();
    timer = window.setTimeout(onRestart, IDLE_SECONDS.go * 1000);
  }

  function stay() {
    notice.remove();
    window.clearTimeout(timer);
    timer = window.setTimeout(() => (canRestart() ? ask() : stay()), IDLE_SECONDS.ask * 1000);
  }

  // The notice stays until its button is pressed: closing earlier would pass the tap to an answer.
  const sign = () => notice.open || stay();
  notice.addEventListener("close", stay);
  for (const name of ["pointerdown", "keydown", "scroll"]) window.addEventListener(name, sign);
  stay();
}

/** Make the browser ask before it closes or reloads the page. @param {() => boolean} losesAnswers */
export function askBeforeLoss(losesAnswers) {
  window.addEventListener("beforeunload", (event) => {
    if (isCalling || !losesAnswers()) return;
    event.preventDefault();
    // Browsers of 2022 ask only if this is set.
    event.returnValue = true;
  });
}

/** Number of presses of Shift, without other keys in between, that leave the page. */
const PRESSES = 3;

/** Maximum milliseconds between two of these presses. */
const PRESS_TIME = 1000;

/** Call `onExit` after Shift has been pressed three times, for people who cannot reach the button. @param {() => void} onExit */
export function leaveOnShift(onExit) {
  let presses = 0;
  let pause = 0;
  window.addEventListener("keydown", ({ key, repeat }) => {
    if (repeat) return;
    presses = key === "Shift" ? presses + 1 : 0;
    // Slower presses may be meant for a screen reader.
    window.clearTimeout(pause);
    pause = window.setTimeout(() => {
      presses = 0;
    }, PRESS_TIME);
    if (presses === PRESSES) {
      presses = 0;
      onExit();
    }
  });
}

/** Say that the translation was made by a machine, unless a native speaker has reviewed it. */
export function translationNotice() {
  const text = say("footer.machine");
  return text ? [paragraph(text)] : [];
}
