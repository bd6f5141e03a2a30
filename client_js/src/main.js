/**
 * The entry: wires the parts together and leads one visit from the address to the acknowledgment.
 */

import { loadDefinition, reasonFor, slugOf } from "./definition.js";
import { createStage, element } from "./dom.js";
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
  stoppingGaps,
} from "./report.js";
import { createPause, sendReport, sendUntilAnswered } from "./transport.js";
import { words } from "./words.js";

/**
 * @typedef {import("./definition.js").Definition} Definition
 * @typedef {import("./outbox.js").Entry} Entry
 * @typedef {import("./outbox.js").Outbox} Outbox
 * @typedef {import("./report.js").Answer} Answer
 * @typedef {import("./report.js").Answers} Answers
 * @typedef {import("./report.js").Drawn} Drawn
 */

const slug = slugOf(location.pathname);
const clientHash = document.body.dataset.clientHash ?? "";
const stage = createStage(/** @type {HTMLElement} */ (document.getElementById("survey")));
const reload = () => location.reload();

/** @type {import("./random.js").GetRandomValues} */
const getRandomValues = (array) => crypto.getRandomValues(array);

async function open() {
  // At another spelling of the address nothing kept would be found: nothing may be asked there.
  if (slug === "") {
    stage.show(cannotView("missing", reload));
    return;
  }
  const outbox = createOutbox(deviceStorage(), slug);
  /** @type {{definition: Definition | null, error: unknown}} */
  const { definition, error } = await loadDefinition(window, slug, getRandomValues).then(
    (loaded) => ({ definition: loaded, error: null }),
    (failure) => ({ definition: null, error: failure }),
  );
  const delivery = createDelivery(outbox, definition);
  if (definition) printFingerprints(definition);
  const entry = outbox.read();
  if (entry.state !== "empty") delivery.resume(entry, false);
  else if (!definition) stage.show(cannotView(reasonFor(error), reload));
  else {
    const onSend = (/** @type {Answers} */ answers, /** @type {Drawn} */ drawn) =>
      report({ answers, drawn, definition }, outbox, delivery);
    begin(createVisit(definition, outbox.durable, onSend));
  }
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
  const { footer } = words;
  document
    .getElementById("fingerprints")
    ?.replaceChildren(
      element("p", {}, `${footer.definition} `, fingerprint(definition.id)),
      element("p", {}, `${footer.code} `, fingerprint(clientHash)),
    );
}

/** As much as a link carries; the start page prints all of it. @param {string} hash */
function fingerprint(hash) {
  return element("code", { title: hash }, hash.slice(0, 16));
}

/** @param {ReturnType<typeof createVisit>} visit */
function begin(visit) {
  window.addEventListener("pagehide", () => {
    visit.forget();
    stage.clear();
  });
  visit.start();
}

/**
 * Make the one report and send it, unless this device already has one.
 *
 * @param {{answers: Answers, drawn: Drawn, definition: Definition}} visited
 * @param {Outbox} outbox
 * @param {ReturnType<typeof createDelivery>} delivery
 */
function report({ answers, drawn, definition }, outbox, delivery) {
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    const circumstances = { stratum: "", invitation: "", drawn };
    const { entry, made } = outbox.freeze(() =>
      makeReport(definition, answers, uniformBelow, drawBytes(getRandomValues, 16), circumstances),
    );
    delivery.resume(entry, !made);
  } catch (error) {
    stage.show(cannotView(reasonFor(error), reload, true));
  } finally {
    uniformBelow.wipe();
  }
}

/**
 * The way of one frozen report to its acknowledgment, and the view for each state on that way.
 *
 * @param {Outbox} outbox
 * @param {Definition | null} definition  null when it did not come
 */
function createDelivery(outbox, definition) {
  const pause = createPause(window);
  const send = (/** @type {string} */ body) => sendReport(fetch, `/s/${slug}/reports`, body);

  /** @param {string} body @param {boolean} earlier */
  async function deliver(body, earlier) {
    stage.show(sendingView(definition, earlier));
    const wait = waiter(earlier);
    const answer = await sendUntilAnswered(() => send(body), wait);
    if (answer.outcome === "refused") {
      resume(outbox.refused(body, answer.status, answer.detail), earlier);
      return;
    }
    outbox.accepted(body);
    const { durable } = outbox;
    stage.show(sentView({ definition, body, durable, earlier, onRemove: remove }));
  }

  /** The waiting view appears with the first failure and stays: later ones only change a line. */
  function waiter(/** @type {boolean} */ earlier) {
    const { durable } = outbox;
    const view = waitingView({ definition, durable, earlier, onTryNow: pause.end });
    let shown = false;
    return (/** @type {number} */ seconds, /** @type {import("./transport.js").Later} */ later) => {
      if (!shown) stage.show(view);
      shown = true;
      view.say(seconds, later.reason);
      return pause.begin(seconds);
    };
  }

  /** Another tab may have removed it first, or made a report since: that one is resumed. */
  const remove = () => resume(outbox.removeTrace(), false);

  /** @param {Extract<Entry, {state: "refused"}>} entry @param {boolean} earlier */
  function showRefused(entry, earlier) {
    if (entry.body === "") {
      stage.show(damagedView(definition, remove));
      return;
    }
    const onTryAgain = () => resume(outbox.retry(), earlier);
    const { durable } = outbox;
    stage.show(refusedView({ definition, entry, durable, earlier, onTryAgain }));
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
    if (entry.state === "empty") stage.show(removedView(definition));
    if (entry.state === "sent") {
      const { durable } = outbox;
      stage.show(markView({ definition, durable, earlier, onRemove: remove }));
    }
  }

  return { resume };
}

/**
 * From the start page to Send: the only place that holds raw answers, and forgets them.
 *
 * @param {Definition} definition
 * @param {boolean} durable  whether this browser lets the page keep anything
 * @param {(answers: Answers, drawn: Drawn) => void} onSend
 */
function createVisit(definition, durable, onSend) {
  const nameOf = randomNames(definition);
  /** @type {Record<string, Answer>} */
  let answers = Object.create(null);
  /** @type {Set<string>} */
  let nudged = new Set();
  /** Questions whose answer is not quite what was typed. @type {Set<string>} */
  let rounded = new Set();
  /** @type {Drawn | undefined} */
  let drawn;
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
    stage.show(startView({ definition, clientHash, durable, onStart: askFirst }));
  }

  /** Which questions are asked is drawn once: drawing again would let one choose. */
  function askFirst() {
    try {
      drawn ??= drawOnce(definition);
    } catch (error) {
      stage.show(cannotView(reasonFor(error), reload));
      return;
    }
    goTo(0, 1);
  }

  /** The pages of this person, with the questions that are asked after the answers so far. */
  function pages() {
    return shownPages(definition, answers, drawn ?? null);
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
    stage.show(
      questionView({
        definition,
        pages: pages(),
        at,
        focusOn,
        nameOf,
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
    stage.show(
      reviewView({
        definition,
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
    return drawQuestions(definition, uniformBelow);
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

open().catch(() => stage.show(cannotView("unexpected", reload)));
