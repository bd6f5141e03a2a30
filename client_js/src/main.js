/**
 * The entry: wires the parts together and leads one visit from the address to the acknowledgment.
 */

import { inLanguage, loadDefinition, readLink, reasonFor, slugOf } from "./definition.js";
import { createStage, element, startAfreshWhenIdle, toolbar } from "./dom.js";
import { questionView, reviewView, startView } from "./form.js";
import { encodeBase64url } from "./mechanism.js";
import {
  cannotView,
  createOutbox,
  damagedView,
  markView,
  refusedView,
  removedView,
  sendingView,
  sentView,
  waitingView,
} from "./outbox.js";
import { createUniformBelow, drawBytes } from "./random.js";
import {
  drawQuestions,
  isOpen,
  makeReport,
  questions,
  shownPages,
  shuffleOptions,
  stoppingGaps,
} from "./report.js";
import {
  createPause,
  forgetFiles,
  sendReport,
  sendUntilAnswered,
  UnavailableError,
} from "./transport.js";
import { pageLanguages, preferred, say, sayIn } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./outbox.js").Entry} Entry
 * @typedef {import("./outbox.js").Outbox} Outbox
 * @typedef {import("./report.js").Answer} Answer
 * @typedef {import("./report.js").Answers} Answers
 * @typedef {import("./report.js").Drawn} Drawn
 * @typedef {import("./definition.js").Link} Link
 * @typedef {{definition: Definition}} Reading  the survey in the language it is read in
 */

const slug = slugOf(location.pathname);
const clientHash = document.body.dataset.clientHash ?? "";
const stage = createStage(/** @type {HTMLElement} */ (document.getElementById("survey")));
const reload = () => location.reload();
const link = readLink(location.hash);
/** Milliseconds until what one tab has stored is known to all. */
const SETTLING = 100;
/** Whether a report is on its way, which on a shared device is kept nowhere else. */
let isWaiting = false;

/** @type {import("./random.js").GetRandomValues} */
const getRandomValues = (array) => crypto.getRandomValues(array);

async function open() {
  sayIn(document, preferred(pageLanguages(document), navigator.languages));
  // At another spelling of the address nothing kept would be found: nothing may be asked there.
  if (slug === "") {
    showPageTools();
    stage.show(() => cannotView({ reason: "missing", onTryAgain: reload }));
    return;
  }
  /** @type {unknown} */
  let error;
  const definition = await loadDefinition(window, slug, link, getRandomValues).catch((failure) => {
    error = failure;
    return null;
  });
  const kept = createOutbox(deviceStorage(), slug, definition?.report_bytes);
  // A shared device keeps nothing new; a report that this one has sent before is still the only one.
  const isFresh = definition?.kiosk && kept.read().state === "empty";
  const outbox = isFresh ? createOutbox(null, slug) : kept;
  const reading = definition && createReading(definition);
  const delivery = createDelivery(outbox, reading);
  const entry = outbox.read();
  // A link that could not be opened yet stays as it is: it may be tried again.
  if (reading || entry.state !== "empty") forgetInvitation();
  if (!reading) showPageTools();
  if (entry.state !== "empty") delivery.resume(entry, false);
  else if (!reading) stage.show(() => cannotView(obstacle(error)));
  else {
    const onSend = (/** @type {Answers} */ answers, /** @type {Drawn} */ drawn) =>
      report({ answers, drawn, reading }, delivery);
    begin(createVisit(reading, outbox.durable, onSend), reading);
  }
}

/** The token lets one report in: it must not stay where the next person looks, in the address. */
function forgetInvitation() {
  if (link.invitation === "" && link.stratum === "") return;
  // What is left says that there was one: a reload must not begin without it.
  const left = link.prefix === "" ? "" : `d=${link.prefix}&`;
  history.replaceState(null, "", `${location.pathname}#${left}i=`);
}

/**
 * The survey in the language that was chosen, by the browser or by hand; the choice is never sent.
 *
 * @param {Definition} survey
 * @returns {Reading}
 */
function createReading(survey) {
  const languages = [survey.language, ...Object.keys(survey.translations)];
  const reading = { definition: survey };
  document.documentElement.dataset.theme = survey.theme;
  showTools(languages, survey, (language) => {
    reading.definition = inLanguage(survey, language);
    sayIn(document, language);
    printFingerprints(survey);
  });
  return reading;
}

/**
 * The way out, and the choice among these languages, the first of which is the browser's.
 *
 * @param {readonly string[]} languages
 * @param {Pick<Definition, "kiosk" | "exit">} survey
 * @param {(language: string) => void} read  from now on in this one
 */
function showTools(languages, survey, read) {
  const tools = document.getElementById("tools");
  const onExit = () => goAway(survey);

  /** @param {string} language */
  function choose(language) {
    const focused = document.activeElement?.closest("#tools") !== null;
    read(language);
    const onLanguage = (/** @type {string} */ chosen) => {
      choose(chosen);
      stage.again();
    };
    tools?.replaceChildren(...toolbar({ languages, language, onExit, onLanguage }));
    if (focused) tools?.querySelector("select")?.focus();
  }

  choose(preferred(languages, navigator.languages));
}

/** What stands above a page whose survey did not come: it speaks what it has words of. */
function showPageTools() {
  const survey = { kiosk: false, exit: "" };
  showTools(pageLanguages(document), survey, (language) => sayIn(document, language));
}

/** @param {unknown} error */
function obstacle(error) {
  const opens = (error instanceof UnavailableError && error.refusal.opens) || "";
  return { reason: reasonFor(error), opens, onTryAgain: reload };
}

/**
 * Away at once: the page forgets its answers, and "Back" does not lead here again. A shared device
 * starts afresh instead, unless a report waits that is kept nowhere else; it shows no answer.
 *
 * @param {Pick<Definition, "kiosk" | "exit">} survey
 */
function goAway({ kiosk, exit }) {
  if (kiosk && isWaiting) return;
  stage.clear();
  if (kiosk) reload();
  else location.replace(exit || "about:blank");
}

/** The browser may deny storage by throwing when it is named. */
function deviceStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

/** @param {Definition} definition */
function printFingerprints(definition) {
  document
    .getElementById("fingerprints")
    ?.replaceChildren(
      element("p", {}, `${say("footer.definition")} `, fingerprint(definition.id)),
      element("p", {}, `${say("footer.code")} `, fingerprint(clientHash)),
    );
}

/** As much as a link carries; the start page prints all of it. @param {string} hash */
function fingerprint(hash) {
  return element("code", { title: hash }, hash.slice(0, 16));
}

/** @param {ReturnType<typeof createVisit>} visit @param {Reading} reading */
function begin(visit, { definition }) {
  window.addEventListener("pagehide", () => {
    visit.forget();
    stage.clear();
  });
  if (definition.kiosk) startAfreshWhenIdle(window, { canGo: () => !isWaiting, onGone: reload });
  visit.start();
}

/**
 * Make the one report and send it, unless this device already has one: then it is forgotten.
 *
 * @param {{answers: Answers, drawn: Drawn, reading: Reading}} visited
 * @param {ReturnType<typeof createDelivery>} delivery
 */
function report({ answers, drawn, reading }, delivery) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const { definition } = reading;
    const id = drawBytes(getRandomValues, 16);
    delivery.begin(makeReport(definition, answers, uniformBelow, id, { ...link, drawn }));
  } catch (error) {
    stage.show(() => cannotView({ ...obstacle(error), asked: true }));
  } finally {
    uniformBelow.wipe();
  }
}

/**
 * The way of one frozen report to its acknowledgment, and the view for each state on that way.
 *
 * @param {Outbox} outbox
 * @param {Reading | null} reading  null when the definition did not come
 */
function createDelivery(outbox, reading) {
  const known = () => reading?.definition ?? null;
  const pause = createPause(window);
  const send = (/** @type {string} */ body) => sendReport(fetch, `/s/${slug}/reports`, body);

  /** @param {string} body @param {boolean} earlier */
  async function deliver(body, earlier) {
    stage.show(() => sendingView(known(), earlier));
    isWaiting = true;
    const answer = await sendUntilAnswered(() => send(body), waiter(earlier));
    isWaiting = false;
    if (answer.outcome === "refused") return resume(outbox.refused(body, answer), earlier);
    outbox.accepted(body);
    forgetFiles(fetch, `/s/${slug}/sent`);
    const { durable } = outbox;
    const actions = { onRemove: remove, onNext: reload };
    stage.show(() => sentView({ definition: known(), body, durable, earlier, ...actions }));
  }

  /** The waiting view appears with the first failure and stays: later ones only change a line. */
  function waiter(/** @type {boolean} */ earlier) {
    const { durable } = outbox;
    /** @type {ReturnType<typeof waitingView> | undefined} */
    let view;
    /** @type {import("./outbox.js").Next} */
    let next;
    const build = () => {
      view = waitingView({ definition: known(), durable, earlier, onTryNow: pause.end });
      view.tell(next);
      return view;
    };
    return (/** @type {number} */ seconds, /** @type {import("./transport.js").Later} */ later) => {
      next = { seconds, reason: later.reason };
      if (view) view.tell(next);
      else stage.show(build);
      return pause.begin(seconds);
    };
  }

  /** Another tab may have removed it first, or made a report since: that one is resumed. */
  const remove = () => resume(outbox.removeTrace(), false);

  /** @param {Extract<Entry, {state: "refused"}>} entry @param {boolean} earlier */
  function showRefused(entry, earlier) {
    if (entry.body === "") return stage.show(() => damagedView(known(), remove));
    const onTryAgain = () => resume(outbox.retry(), earlier);
    const { durable } = outbox;
    const onRemove = () => resume(outbox.giveUp(), earlier);
    stage.show(() =>
      refusedView({ definition: known(), entry, durable, earlier, onTryAgain, onRemove }),
    );
  }

  /**
   * Another tab may make a report in the same moment. They take turns where the browser can tell
   * whose it is; the one that is kept a little later is sent, from both.
   *
   * @param {string} body  made of the answers of this visit
   */
  async function begin(body) {
    stage.show(() => sendingView(known(), false));
    const settled = async () => {
      outbox.freeze(body);
      isWaiting = true;
      await new Promise((resolve) => window.setTimeout(resolve, SETTLING));
      isWaiting = false;
    };
    const { locks } = navigator;
    await (locks?.request(slug, settled) ?? settled());
    const kept = outbox.read();
    resume(kept, !("body" in kept && kept.body === body));
  }

  /**
   * Go on from what the outbox holds.
   *
   * @param {Entry} entry
   * @param {boolean} earlier  whether it was made before the answers of this visit
   */
  function resume(entry, earlier) {
    if (entry.state === "pending") deliver(entry.body, earlier);
    if (entry.state === "refused") showRefused(entry, earlier);
    if (entry.state === "empty") stage.show(() => removedView(known()));
    if (entry.state === "sent") {
      const { durable } = outbox;
      stage.show(() => markView({ definition: known(), durable, earlier, onRemove: remove }));
    }
  }

  return { begin, resume };
}

/**
 * From the start page to Send: the only place that holds raw answers, and forgets them.
 *
 * @param {Reading} reading
 * @param {boolean} durable  whether this browser lets the page keep anything
 * @param {(answers: Answers, drawn: Drawn) => void} onSend
 */
function createVisit(reading, durable, onSend) {
  const nameOf = randomNames(reading.definition);
  /** @type {Record<string, Answer>} */
  let answers = Object.create(null);
  /** @type {Set<string>} */
  let nudged = new Set();
  /** Questions whose answer is not quite what was typed. @type {Set<string>} */
  let rounded = new Set();
  /** @type {Drawn | undefined} */
  let drawn;
  /** @type {Map<string, number[]>} */
  let orders = new Map();
  let reviewed = false;

  function forget() {
    for (const question of Object.keys(answers)) delete answers[question];
    answers = Object.create(null);
    nudged = new Set();
    rounded = new Set();
    drawn = undefined;
    reviewed = false;
  }

  function start() {
    stage.show(() => startView({ ...reading, clientHash, link, durable, onStart: askFirst }));
  }

  /** Which questions are asked is drawn once: drawing again would let one choose. */
  function askFirst() {
    try {
      if (drawn === undefined) ({ drawn, orders } = drawOnce(reading.definition));
    } catch (error) {
      stage.show(() => cannotView(obstacle(error)));
      return;
    }
    goTo(0, 1);
  }

  /** The pages of this person, with the questions that are asked after the answers so far. */
  function pages() {
    return shownPages(reading.definition, answers, drawn ?? null);
  }

  /** @param {string} question @param {Answer | undefined} given @param {boolean} [isRounded] */
  function keep(question, given, isRounded = false) {
    if (given === undefined) delete answers[question];
    else answers[question] = given;
    if (isRounded) rounded.add(question);
    else rounded.delete(question);
  }

  /** @param {number} at @param {string | null} [focusOn] */
  function ask(at, focusOn = null) {
    stage.show(() =>
      questionView({
        ...reading,
        pages: pages(),
        at,
        focusOn,
        nameOf,
        orderOf: (question) => orders.get(question),
        fromReview: reviewed,
        answerTo: (question) => answers[question],
        onAnswer: keep,
        onContinue: (wrong) => leave(at, wrong),
        onBack: () => back(at),
      }),
    );
  }

  /** @param {number} at @param {Set<string>} wrong */
  function leave(at, wrong) {
    const gaps = stoppingGaps(pages()[at].questions, answers, nudged, wrong);
    if (gaps.length === 0 && reviewed) goTo(firstOpen(), 1);
    else if (gaps.length === 0) goTo(at + 1, 1);
    return gaps;
  }

  /** From a change back to the review; the long way when the change has left something open. */
  function back(/** @type {number} */ at) {
    reviewed = reviewed && firstOpen() === pages().length;
    if (reviewed) review();
    else goTo(at - 1, -1);
  }

  /** The first page with a question that waits for an answer; one past the last when none does. */
  function firstOpen() {
    const open = pages().findIndex((page) =>
      page.questions.some((question) => isOpen(question, answers, nudged)),
    );
    return open < 0 ? pages().length : open;
  }

  /**
   * @param {number} at  -1 is the start page, one past the last is the review
   * @param {1 | -1} direction  in which to pass over pages that ask nothing
   */
  function goTo(at, direction) {
    const all = pages();
    let next = at;
    while (all[next]?.questions.length === 0) next += direction;
    if (next < 0) start();
    else if (next < all.length) ask(next);
    else review();
  }

  function review() {
    reviewed = true;
    stage.show(() =>
      reviewView({
        ...reading,
        pages: pages(),
        answerTo: (question) => answers[question],
        isRounded: (question) => rounded.has(question),
        onChange: (question) => ask(pageOf(pages(), question), question),
        onBack: () => {
          reviewed = false;
          goTo(pages().length - 1, -1);
        },
        onSend: send,
      }),
    );
  }

  /** Whatever becomes of the report, the raw answers end here. */
  function send() {
    try {
      onSend(answers, drawn ?? null);
    } finally {
      forget();
    }
  }

  return { start, forget };
}

/** @param {Definition} definition */
function drawOnce(definition) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const drawn = drawQuestions(definition, uniformBelow);
    return { drawn, orders: shuffleOptions(definition, uniformBelow) };
  } finally {
    uniformBelow.wipe();
  }
}

/** @param {import("./definition.js").Page[]} pages @param {string} question */
function pageOf(pages, question) {
  return pages.findIndex((page) => page.questions.some(({ id }) => id === question));
}

/** Radio groups need a name; one made for this load alone means nothing to anyone else. */
function randomNames(/** @type {Definition} */ definition) {
  const names = new Map(
    questions(definition).map(({ id }) => [
      id,
      `n${encodeBase64url(drawBytes(getRandomValues, 12))}`,
    ]),
  );
  return (/** @type {string} */ question) => names.get(question) ?? "";
}

// A page taken back from the browser's memory starts anew: what it held is forgotten.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) reload();
});

// Another link pasted over this one; a report that is kept nowhere else goes first.
window.addEventListener("hashchange", () => {
  if (!isWaiting) reload();
});

open().catch(() => stage.show(() => cannotView({ reason: "unexpected", onTryAgain: reload })));
