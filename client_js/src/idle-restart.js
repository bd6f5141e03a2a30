/**
 * Restarts the survey on a shared device that nobody touches.
 */

import { button, element } from "./dom.js";
import { count, say } from "./texts.js";

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
