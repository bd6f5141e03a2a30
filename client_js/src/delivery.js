/**
 * Takes one report to its acknowledgment and shows the view of each state on that way.
 */

import { isTestRun } from "./link.js";
import { totalRatio } from "./privacy-loss.js";
import { createPause, forgetFiles, sendReport, sendUntilAnswered } from "./transport.js";
import {
  damagedView,
  markView,
  refusedView,
  removedView,
  sendingView,
  sentView,
  testRunView,
  waitingView,
} from "./view-delivery.js";

/**
 * @typedef {import("./display.js").Display} Display
 * @typedef {import("./outbox.js").EarlierSurveys} EarlierSurveys
 * @typedef {import("./outbox.js").Earlier} Earlier
 * @typedef {import("./outbox.js").Entry} Entry
 * @typedef {import("./outbox.js").Outbox} Outbox
 * @typedef {import("./transport.js").Later} Later
 * @typedef {import("./view-delivery.js").Attempt} Attempt
 * @typedef {import("./visit.js").Survey} Survey
 */

/** Milliseconds until all tabs see what one of them has stored. */
const STORAGE_DELAY = 100;

/** The status with which a server refuses real reports to a test run. */
const FORBIDDEN = 403;

/**
 * Create the delivery of one survey's report.
 *
 * In the views, `earlier` says whether the report was made before this visit's answers.
 *
 * @param {object} parts
 * @param {import("./link.js").Address} parts.address
 * @param {Display} parts.display
 * @param {Outbox} parts.outbox
 * @param {Survey | null} parts.survey  null when the definition did not load
 * @param {EarlierSurveys} parts.earlierSurveys
 * @param {() => void} parts.reload
 */
export function createDelivery({ address, display, outbox, survey, earlierSurveys, reload }) {
  const { slug, collector, server } = address;
  const definition = () => survey?.definition ?? null;
  const pause = createPause(window);
  const send = (/** @type {string} */ body) => sendReport(fetch, `${server}/reports`, body);
  let isSending = false;

  /** @param {string} body @param {boolean} earlier */
  async function deliver(body, earlier) {
    display.show(() => sendingView(definition(), earlier));
    isSending = true;
    const outcome = await sendUntilAnswered(() => send(body), waiter(earlier));
    isSending = false;
    if (outcome.outcome === "refused") {
      // Only for a test run: at a survey, a discarded report would allow a second randomization.
      if (outcome.status !== FORBIDDEN || !isTestRun(slug))
        return resume(outbox.refused(body, outcome), earlier);
      outbox.discard(body);
      return display.show(() => testRunView(definition()));
    }
    outbox.accepted(body);
    // Another host's page has its files in the cache of that host, which the collector cannot clear.
    if (collector === "") forgetFiles(fetch, `${server}/sent`);
    const { durable } = outbox;
    const memory = createOffer();
    const actions = { onRemove: remove, onNext: reload, memory };
    display.show(() => sentView({ definition: definition(), body, durable, earlier, ...actions }));
  }

  /** Show the waiting view after the first failure; later failures only change its status line. */
  function waiter(/** @type {boolean} */ earlier) {
    const { durable } = outbox;
    /** @type {ReturnType<typeof waitingView> | undefined} */
    let view;
    /** @type {Attempt} */
    let attempt;
    const build = () => {
      view = waitingView({ definition: definition(), durable, earlier, onTryNow: pause.end });
      view.announce(attempt);
      return view;
    };
    return (/** @type {number} */ seconds, /** @type {Later} */ later) => {
      attempt = { seconds, reason: later.reason };
      if (view) view.announce(attempt);
      else display.show(build);
      return pause.begin(seconds);
    };
  }

  /** Create the offer to remember the survey just answered; null where nothing is remembered. */
  function createOffer() {
    const answered = survey?.definition;
    if (!answered || answered.kiosk || !outbox.durable) return null;
    /** @type {Earlier | null | undefined} */
    let earlier;
    return {
      /** Return what the device remembers, null after forgetting, undefined before the choice. */
      read: () => earlier,
      remember() {
        earlier = earlierSurveys.add(totalRatio(answered));
      },
      forget() {
        earlierSurveys.forget();
        earlier = null;
      },
    };
  }

  /**
   * Forget this survey and the numbers of all surveys: a person who presses the button wants no
   * trace. Another tab may have made a report since; then that report is resumed.
   */
  function remove() {
    earlierSurveys.forget();
    resume(outbox.removeTrace(), false);
  }

  /** @param {Extract<Entry, {state: "refused"}>} entry @param {boolean} earlier */
  function showRefused(entry, earlier) {
    if (entry.body === "") return display.show(() => damagedView(definition(), remove));
    const onTryAgain = () => resume(outbox.retry(), earlier);
    const { durable } = outbox;
    const onRemove = () => resume(outbox.giveUp(), earlier);
    display.show(() =>
      refusedView({ definition: definition(), entry, durable, earlier, onTryAgain, onRemove }),
    );
  }

  /**
   * Store a new report and send the one that is then stored. Two tabs may make a report in the same
   * moment: with browser locks they take turns; without, the later report is sent from both.
   *
   * @param {string} body  made from the answers of this visit
   */
  async function begin(body) {
    display.show(() => sendingView(definition(), false));
    const storeInTurn = async () => {
      outbox.store(body);
      isSending = true;
      await new Promise((resolve) => window.setTimeout(resolve, STORAGE_DELAY));
      isSending = false;
    };
    const { locks } = navigator;
    await (locks?.request(slug, storeInTurn) ?? storeInTurn());
    const entry = outbox.read();
    resume(entry, !("body" in entry && entry.body === body));
  }

  /**
   * Continue from the entry in the outbox.
   *
   * @param {Entry} entry
   * @param {boolean} earlier
   */
  function resume(entry, earlier) {
    if (entry.state === "pending") deliver(entry.body, earlier);
    if (entry.state === "refused") showRefused(entry, earlier);
    if (entry.state === "empty") display.show(() => removedView(definition()));
    if (entry.state === "sent") {
      const { durable } = outbox;
      display.show(() =>
        markView({ definition: definition(), durable, earlier, onRemove: remove }),
      );
    }
  }

  return { begin, resume, isSending: () => isSending };
}

/**
 * @typedef {ReturnType<typeof createDelivery>} Delivery
 * @typedef {{read: () => Earlier | null | undefined, remember: () => void, forget: () => void}} Offer
 */
