import assert from "node:assert/strict";
import { test } from "node:test";
import { createPause } from "../src/pause.js";

/** A window whose clock stands still until it is told. */
function stoppedWindow() {
  const timers = new Map();
  const listeners = {};
  return {
    timers,
    listeners,
    setTimeout: (run, milliseconds) => {
      timers.set(timers.size + 1, { run, milliseconds });
      return timers.size;
    },
    clearTimeout: (id) => void timers.delete(id),
    addEventListener: (name, listener) => {
      listeners[name] = listener;
    },
  };
}

const ENDINGS = {
  "its time is over": ({ timers }) => timers.get(1).run(),
  "the network is back": ({ listeners }) => listeners.online(),
  "someone says now": (_window, pause) => pause.end(),
};
for (const [name, end] of Object.entries(ENDINGS)) {
  test(`a pause ends when ${name}`, async () => {
    const window = stoppedWindow();
    const pause = createPause(window);
    const waited = pause.begin(5);
    assert.equal(window.timers.get(1).milliseconds, 5000);
    end(window, pause);
    await waited;
    assert.equal(window.timers.size, 0);
  });
}

test("saying now while nothing waits does nothing", () => {
  createPause(stoppedWindow()).end();
});
