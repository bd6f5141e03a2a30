/**
 * The way of one frozen report to its acknowledgment, and the view for each state on that way.
 */

import {
  damagedView,
  markView,
  refusedView,
  removedView,
  sendingView,
  sentView,
  waitingView,
} from "./outcome.js";
import { sendUntilAnswered } from "./transport.js";

/**
 * @typedef {import("./outbox.js").Entry} Entry
 * @typedef {Extract<Entry, {state: "refused"}>} RefusedEntry
 * @typedef {object} Parts
 * @property {import("./stage.js").Stage} stage
 * @property {import("./outbox.js").Outbox} outbox
 * @property {import("./definition.js").Definition | null} definition  null when it did not come
 * @property {(body: string) => Promise<import("./transport.js").Outcome>} send
 * @property {import("./pause.js").Pause} pause
 */

/**
 * @param {Parts} parts
 */
export function createDelivery({ stage, outbox, definition, send, pause }) {
  /** @param {string} body @param {boolean} earlier */
  async function deliver(body, earlier) {
    stage.show(sendingView(definition, earlier));
    const wait = waiter(earlier);
    const answer = await sendUntilAnswered(() => send(body), wait);
    if (answer.outcome === "refused") {
      resume(outbox.refused(answer.status, answer.detail), earlier);
      return;
    }
    outbox.accepted();
    stage.show(sentView({ definition, body, earlier, onRemove: remove }));
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

  function remove() {
    outbox.removeTrace();
    stage.show(removedView(definition));
  }

  /** @param {RefusedEntry} entry @param {boolean} earlier */
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
    if (entry.state === "sent") stage.show(markView(definition, earlier, remove));
  }

  return { resume };
}
