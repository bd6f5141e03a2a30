/**
 * Reads questions aloud, only with the device's own voices: a voice from the network would reveal the
 * questions to its provider.
 */

import { button, element } from "./dom.js";
import { filledWords } from "./piped-text.js";
import { say } from "./texts.js";

/**
 * @typedef {import("./definition.js").Question} Question
 * @typedef {import("./view-questions.js").PageContext} PageContext
 */

/** Stops the current reading. @type {() => void} */
let stop = () => {};

/** Stop reading, because the page changes or the person leaves it. */
export function stopReading() {
  stop();
}

/**
 * Return a button that reads a page of questions aloud, hidden while the device has no voice of its own
 * for the language; [] if the browser cannot speak.
 *
 * @param {PageContext} context
 * @returns {HTMLElement[]}
 */
export function readAloud(context) {
  const { speechSynthesis: speech, SpeechSynthesisUtterance: Utterance } = window;
  // Android does not say which voices use the network.
  if (!speech || /Android/.test(navigator.userAgent)) return [];
  const { pages, at } = context;
  const { language, untranslated } = context.definition;
  let isReading = false;

  function start() {
    isReading = true;
    const spoken = pages[at].questions.flatMap((question) => textsOf(context, question));
    const utterances = spoken.map(([text, words]) => {
      const utterance = new Utterance(words);
      // Read an untranslated text in the language in which it was written.
      const own = localVoice(speech, untranslated.get(text) ?? language);
      utterance.voice = own ?? localVoice(speech, language);
      utterance.lang = utterance.voice?.lang ?? language;
      return utterance;
    });
    stop = () => {
      stop = () => {};
      isReading = false;
      speech.cancel();
      toggle.replaceChildren(say("read.start"));
    };
    const end = stop;
    // The end, or a late error, of a stopped reading must not stop the next one.
    const onEnd = () => stop === end && end();
    utterances[utterances.length - 1].onend = onEnd;
    toggle.replaceChildren(say("read.stop"));
    // The browser's queue may contain a reading of another page.
    speech.cancel();
    for (const utterance of utterances) {
      utterance.onerror = onEnd;
      if (utterance.voice) speech.speak(utterance);
    }
  }

  const toggle = button(say("read.start"), () => (isReading ? stop() : start()), { class: "link" });
  const place = element("div", { class: "read-aloud" }, toggle);
  const update = () => {
    place.hidden = !localVoice(speech, language);
  };
  // Many browsers load their voices only on request.
  speech.onvoiceschanged = update;
  update();
  return [place];
}

/**
 * Return a voice that works without the network, preferably one of the same region.
 *
 * @param {SpeechSynthesis} speech
 * @param {string} language
 */
function localVoice(speech, language) {
  // Voices for simplified Chinese have the tag zh-CN.
  const tagOf = (/** @type {string} */ tag) =>
    tag.replace("_", "-").replace("Hans", "CN").toLowerCase();
  const wanted = tagOf(language);
  const voices = speech
    .getVoices()
    .filter(
      ({ localService, lang }) =>
        localService === true && tagOf(lang).split("-")[0] === wanted.split("-")[0],
    );
  return voices.find(({ lang }) => tagOf(lang) === wanted) ?? voices[0] ?? null;
}

/**
 * Return the texts of a question to read aloud, in order, each with the words that this person sees.
 *
 * @param {PageContext} context
 * @param {Question} question
 */
function textsOf(context, question) {
  const { id, text, help, options, slider } = question;
  const labels = (context.orderOf(id) ?? options.map((_, i) => i)).flatMap((at) => {
    const { label, picture } = options[at];
    return picture && picture.alt !== label ? [picture.alt, label] : [label];
  });
  const ends = slider ? [slider.low, slider.high] : [];
  return [
    [text, filledWords(context, question, "text")],
    [help, filledWords(context, question, "help")],
    ...[...ends, ...labels].map((part) => [part, part]),
  ].filter(([part]) => part !== "");
}
