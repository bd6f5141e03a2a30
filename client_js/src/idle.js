/**
 * Starts a shared device afresh when nobody touches it.
 */

import { button, element } from "./dom.js";
import { count, say } from "./words.js";

/** Of a shared device, when nobody touches it: how long until it asks, and then until it goes. */
const IDLE_SECONDS = { ask: 120, go: 60 };

/**
 * On a shared device nobody must find the answers of somebody who went away.
 *
 * @param {typeof globalThis & Window} window
 * @param {object} of
 * @param {() => boolean} of.canRestart  whether nothing would be lost now
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
    // A browser without dialogs cannot ask.
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

  // Gone before the finger is lifted, the notice would let the tap through to an answer beneath it.
  const sign = () => notice.open || stay();
  notice.addEventListener("close", stay);
  for (const name of ["pointerdown", "keydown", "scroll"]) window.addEventListener(name, sign);
  stay();
}
