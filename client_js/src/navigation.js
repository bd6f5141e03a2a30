/**
 * The visit's steps as entries in the browser's history, so that a phone's Back button goes one page
 * back.
 *
 * All entries have the same address and title, and their only state is a number: the history never
 * shows an answer.
 */

/**
 * @typedef {Pick<History, "state" | "length" | "pushState" | "go">} Entries
 * @typedef {ReturnType<typeof createNavigation>} Navigation
 */

/**
 * Maximum number of entries after the start page. Browsers keep 50 entries in a tab and drop the oldest,
 * so a visit with more could not be left.
 */
const MAX_ENTRIES = 40;

/**
 * Create the navigation of one visit.
 *
 * @param {Pick<Window, "addEventListener">} window
 * @param {Entries} history
 */
export function createNavigation(window, history) {
  /** The functions that show the steps of the visit; the start page is first. @type {(() => void)[]} */
  let steps = [];
  /** The step on the screen. Those after the last entry have none, so a phone's Back button skips them. */
  let at = 0;
  let capacity = () => 0;
  let arrived = () => {};
  const depth = () => {
    const { state, length } = history;
    return Number.isInteger(state) && state > 0 && state < length ? state : 0;
  };

  window.addEventListener("popstate", () => {
    arrived();
    at = depth();
    steps[at]?.();
  });

  /**
   * Return to the first entry of the visit, then act. The next page in this tab can count the entries,
   * so a visit with skipped questions gets as many entries as one that showed all questions.
   */
  function unwind(/** @type {() => void} */ act) {
    steps = [];
    if (depth() === 0) return act();
    const last = Math.min(capacity(), MAX_ENTRIES);
    for (at = depth() + 1; at <= last; at += 1) history.pushState(at, "");
    arrived = () => {
      arrived = () => {};
      act();
    };
    history.go(-depth());
  }

  return {
    /**
     * Show the first step.
     *
     * @param {() => void} show
     * @param {() => number} most  the number of steps without skipped questions
     */
    begin(show, most) {
      // A reload keeps the entries of the previous visit, whose answers are gone.
      unwind(() => {
        steps = [show];
        capacity = most;
        show();
      });
    },

    /** Show the next step. @param {() => void} show */
    forward(show) {
      at += 1;
      steps[at] = show;
      if (at <= MAX_ENTRIES) history.pushState(at, "");
      show();
    },

    /** Show the previous step, like a phone's Back button. */
    back() {
      if (at <= MAX_ENTRIES) return history.go(-1);
      at -= 1;
      steps[at]();
    },

    unwind,
  };
}
