import assert from "node:assert/strict";
import { test } from "node:test";
import { createNavigation } from "../src/navigation.js";

/** A tab that keeps at most 50 entries, as browsers do, and drops the oldest. */
function createTab(earlier, ignored = 0) {
  let entries = Array.from({ length: earlier + 1 }, () => null);
  let at = earlier;
  let pushes = 0;
  const listeners = [];
  const history = {
    get state() {
      return entries[at];
    },
    get length() {
      return entries.length;
    },
    pushState(state) {
      pushes += 1;
      assert.ok(pushes < 1000, "an endless loop");
      if (pushes <= ignored) return;
      entries = [...entries.slice(0, at + 1), state].slice(-50);
      at = entries.length - 1;
    },
    go(by) {
      if (entries[at + by] === undefined) return;
      at += by;
      for (const listener of listeners) listener();
    },
  };
  return { history, window: { addEventListener: (_, listener) => listeners.push(listener) } };
}

/** Start a visit with `most` steps after the start page; `shown` has the steps shown so far. */
function createVisit({ most, earlier = 0, ignored = 0 }) {
  const { history, window } = createTab(earlier, ignored);
  const navigation = createNavigation(window, history);
  const shown = [];
  navigation.begin(
    () => shown.push(0),
    () => most,
  );
  const goTo = (step) => navigation.forward(() => shown.push(step));
  return { history, navigation, shown, goTo };
}

for (const most of [3, 20, 49, 50, 201]) {
  for (const earlier of [0, 30, 49]) {
    test(`a visit of ${most} steps after ${earlier} pages in the tab can be left at any step`, () => {
      const lengths = new Set();
      for (const last of [1, 3, most]) {
        const { history, navigation, goTo } = createVisit({ most, earlier });
        for (let step = 1; step <= last; step += 1) goTo(step);
        let isLeft = false;
        navigation.unwind(() => {
          isLeft = true;
        });
        assert.ok(isLeft);
        assert.equal(history.state, null);
        lengths.add(history.length);
      }
      assert.equal(lengths.size, 1, "the number of entries shows how many steps there were");
    });
  }
}

test("Back shows the step before, also after more steps than a tab has entries", () => {
  const { navigation, shown, goTo } = createVisit({ most: 61 });
  for (let step = 1; step <= 52; step += 1) goTo(step);
  for (let step = 51; step >= 0; step -= 1) {
    navigation.back();
    assert.equal(shown.at(-1), step);
  }
  goTo(1);
  navigation.back();
  assert.deepEqual(shown.slice(-2), [1, 0]);
});

test("a phone's Back returns to an earlier step, and the visit goes on from there", () => {
  const { history, navigation, shown, goTo } = createVisit({ most: 61 });
  for (let step = 1; step <= 52; step += 1) goTo(step);
  history.go(-1);
  const step = shown.at(-1);
  assert.ok(step > 30 && step < 52);
  goTo(step + 1);
  goTo(step + 2);
  navigation.back();
  assert.equal(shown.at(-1), step + 1);
});

test("a visit ends although the browser ignores entries that are added too fast", () => {
  const { navigation, goTo } = createVisit({ most: 30, ignored: 10 });
  for (let step = 1; step <= 12; step += 1) goTo(step);
  let isLeft = false;
  navigation.unwind(() => {
    isLeft = true;
  });
  assert.ok(isLeft);
});
