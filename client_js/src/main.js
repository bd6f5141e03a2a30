/**
 * The entry point: connects the modules for one visit, from the address to the acknowledgment.
 */

import { loadDefinition } from "./definition.js";
import { DefinitionError } from "./definition-error.js";
import { translateDefinition } from "./definition-structure.js";
import { createDelivery } from "./delivery.js";
import {
  askBeforeLoss,
  createDisplay,
  leaveOnShift,
  restartWhenIdle,
  toolbar,
  translationNotice,
} from "./display.js";
import { element } from "./dom.js";
import { withoutInvitation } from "./link.js";
import { createNavigation } from "./navigation.js";
import { address, definitionBytes, link, words } from "./opening.js";
import { createEarlierSurveys, createOutbox } from "./outbox.js";
import { loadPictures } from "./pictures.js";
import { createUniformBelow, drawBytes } from "./random.js";
import { makeReport } from "./report.js";
import { pieces, selectLanguage } from "./texts.js";
import { obstacleOf, UnavailableError } from "./transport.js";
import { obstacleView } from "./view-delivery.js";
import { createVisit } from "./visit.js";
import { loadedLanguages, preferredLanguage } from "./words.js";

/**
 * @typedef {import("./answers.js").Answers} Answers
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./delivery.js").Delivery} Delivery
 * @typedef {import("./outbox.js").EarlierSurveys} EarlierSurveys
 * @typedef {import("./outbox.js").Outbox} Outbox
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 * @typedef {import("./answers.js").Drawn} Drawn
 * @typedef {import("./visit.js").Survey} Survey
 * @typedef {import("./visit.js").Visit} Visit
 */

const { slug } = address;
const display = createDisplay(/** @type {HTMLElement} */ (document.getElementById("survey")));
const navigation = createNavigation(window, history);

/** Whether this page holds a report that is not sent yet; a shared device stores it nowhere else. */
let isSending = () => false;

/** Whether the browser must ask before it closes or reloads the page. */
let losesAnswers = () => false;

function reload() {
  losesAnswers = () => false;
  location.reload();
}

/** @type {GetRandomValues} */
const getRandomValues = (array) => crypto.getRandomValues(array);

async function open() {
  // If the texts do not load, the page keeps its initial notice.
  await words;
  selectLanguage(document, navigator.languages);
  showVersion();
  // Another spelling of the address would miss the stored report and allow a second one.
  if (slug === "") {
    showPageToolbar();
    display.show(() => obstacleView({ reason: "missing", onTryAgain: reload }));
    return;
  }
  /** @type {unknown} */
  let error;
  const definition = await definitionBytes
    .then((bytes) => loadDefinition(bytes, slug, link, crypto.subtle))
    .catch((failure) => {
      error = failure;
      return null;
    });
  const onDevice = createOutbox(deviceStorage(), slug, definition?.report_bytes);
  // A shared device stores nothing new; a report that it stored before still counts.
  const isFresh = definition?.kiosk && onDevice.read().state === "empty";
  const outbox = isFresh ? createOutbox(null, slug) : onDevice;
  const survey = definition && createSurvey(definition);
  // A shared device must not tell one person what another has answered.
  const earlierSurveys = createEarlierSurveys(definition?.kiosk ? null : deviceStorage());
  const delivery = createDelivery({ address, display, outbox, survey, earlierSurveys, reload });
  isSending = delivery.isSending;
  const entry = outbox.read();
  // A link that could not be opened stays as it is, so that the person can try it again.
  if (survey || entry.state !== "empty") removeInvitation();
  if (!survey) showPageToolbar();
  if (entry.state !== "empty") delivery.resume(entry, false);
  else if (!survey) display.show(() => obstacleView(obstacle(error)));
  else startVisit(survey, outbox, delivery, earlierSurveys);
}

/** Remove the token from the address, where the next person could find and use it. */
function removeInvitation() {
  if (link.invitation === "" && link.stratum === "") return;
  history.replaceState(null, "", `${location.pathname}${withoutInvitation(address, link)}`);
}

/**
 * Show the survey in the browser's language, and let people change it; the choice is never sent.
 *
 * @param {Definition} original
 * @returns {Survey}
 */
function createSurvey(original) {
  const languages = [original.language, ...Object.keys(original.translations)];
  const survey = { definition: original };
  document.documentElement.dataset.theme = original.theme;
  showToolbar(languages, original, (language) => {
    survey.definition = translateDefinition(original, language);
    selectLanguage(document, [language]);
    showVersion();
  });
  return survey;
}

/**
 * Show "Leave now" and the languages, starting with the one that the browser prefers.
 *
 * @param {readonly string[]} languages
 * @param {Pick<Definition, "kiosk" | "exit">} survey
 * @param {(language: string) => void} translate
 */
function showToolbar(languages, survey, translate) {
  const tools = document.getElementById("tools");
  const onExit = () => leavePage(survey);
  leaveOnShift(onExit);

  /** @param {string} language */
  function choose(language) {
    const hasFocus = document.activeElement?.closest("#tools") !== null;
    translate(language);
    const onLanguage = (/** @type {string} */ choice) => {
      choose(choice);
      display.refresh();
    };
    tools?.replaceChildren(...toolbar({ languages, language, onExit, onLanguage }));
    if (hasFocus) tools?.querySelector("select")?.focus();
  }

  choose(preferredLanguage(languages, navigator.languages));
}

/** Show the toolbar of a page whose survey did not load, in the languages of the interface. */
function showPageToolbar() {
  const survey = { kiosk: false, exit: "" };
  showToolbar(loadedLanguages(), survey, (language) => {
    selectLanguage(document, [language]);
    showVersion();
  });
}

/**
 * Open the current version, which the person chose after reading that the link is for another one.
 *
 * @param {unknown} error  it has the id of that version
 */
function openVersion(error) {
  const prefix = error instanceof DefinitionError ? error.current.slice(0, 32) : "";
  const fragment = address.collector === "" ? `d=${prefix}` : `slug=${slug}&d=${prefix}`;
  history.replaceState(null, "", `${location.pathname}#${fragment}`);
  reload();
}

/** @param {unknown} error */
function obstacle(error) {
  const { opens = "", survey } = error instanceof UnavailableError ? error.refusal : {};
  const reason = obstacleOf(error);
  const onTryAgain = reason === "other_version" ? () => openVersion(error) : reload;
  return { reason, opens, survey, onTryAgain };
}

/** The destination of "Leave now" if the survey names none: a page that nobody asks about. */
const NEUTRAL_PAGE = "https://www.wikipedia.org/";

/**
 * Clear the page and leave it without a way back. A shared device starts again instead, unless it
 * still has a report to send, which the page does not show.
 *
 * @param {Pick<Definition, "kiosk" | "exit">} survey
 */
function leavePage({ kiosk, exit }) {
  if (kiosk && isSending()) return;
  losesAnswers = () => false;
  // Empty the page immediately: the next one may be slow, and somebody may be watching.
  display.clear();
  for (const id of ["tools", "version"]) document.getElementById(id)?.replaceChildren();
  document.title = "\u200e";
  if (kiosk) reload();
  else navigation.unwind(() => location.replace(exit || NEUTRAL_PAGE));
}

/** Return the device's storage; browsers that deny it throw at its name. */
function deviceStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/**
 * Show the version that the page claims to be, the command that checks it, and whether the translation
 * was made by a machine.
 */
function showVersion() {
  const version = document.querySelector('meta[name="version"]')?.getAttribute("content") ?? "";
  const collector = address.collector && ` --collector ${address.collector}`;
  const page = `${location.origin}${location.pathname}`;
  const command = element("code", {}, `survey verify ${page}${collector}`);
  const text = pieces("footer.version", { version, command });
  const footer = document.getElementById("version");
  footer?.replaceChildren(...translationNotice(), element("p", {}, ...text));
}

/**
 * @param {Survey} survey
 * @param {Outbox} outbox
 * @param {Delivery} delivery
 * @param {EarlierSurveys} earlierSurveys
 */
function startVisit(survey, outbox, delivery, earlierSurveys) {
  /** @type {(answers: Answers, drawn: Drawn) => void} */
  const onSend = (answers, drawn) => sendAnswers({ answers, drawn, survey }, delivery);
  loadPictures(window.fetch, address.collector, survey.definition);
  const visit = createVisit({
    survey,
    display,
    navigation,
    getRandomValues,
    start: { link, durable: outbox.durable },
    earlierSurveys,
    onSend,
    onError: (error) => display.show(() => obstacleView(obstacle(error))),
  });
  losesAnswers = () => visit.hasAnswers() || (isSending() && !outbox.durable);
  window.addEventListener("pagehide", () => {
    visit.forget();
    display.clear();
  });
  // Another tab has sent a report for this survey, so this tab must not send a second one.
  window.addEventListener("storage", () => {
    const entry = outbox.read();
    // The other tab delivers a report that is being sent.
    if (visit.isEnded() || entry.state !== "sent") return;
    const hadAnswers = visit.hasAnswers();
    visit.close();
    delivery.resume(entry, hadAnswers);
  });
  if (survey.definition.kiosk) {
    restartWhenIdle(window, { canRestart: () => !isSending(), onRestart: reload });
  }
  visit.begin();
}

/**
 * Make the report and send it; if this device already stores one, the new report is dropped.
 *
 * @param {{answers: Answers, drawn: Drawn, survey: Survey}} visited
 * @param {Delivery} delivery
 */
function sendAnswers({ answers, drawn, survey }, delivery) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const { definition } = survey;
    const id = drawBytes(getRandomValues, 16);
    delivery.begin(makeReport(definition, answers, uniformBelow, id, { ...link, drawn }));
  } catch (error) {
    display.show(() => obstacleView({ ...obstacle(error), hasAnswers: true }));
  } finally {
    uniformBelow.wipe();
  }
}

askBeforeLoss(() => losesAnswers());

// A page restored from the browser's memory has forgotten its answers, so it starts again.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) reload();
});

// Another link was pasted over this one; a report that is stored nowhere else is sent first.
window.addEventListener("hashchange", () => {
  if (!isSending()) reload();
});

open().catch(() => {
  // `guard.js` treats missing texts like a missing script.
  if (loadedLanguages().length === 0)
    document.querySelector("script")?.dispatchEvent(new Event("error"));
  else display.show(() => obstacleView({ reason: "unexpected", onTryAgain: reload }));
});
