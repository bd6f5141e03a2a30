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
 * Create the navigation of one visit.
 *
 * @param {Pick<Window, "addEventListener">} window
 * @param {Entries} history
 */
export function createNavigation(window, history) {
  /** The functions that show the steps of the visit; the start page is first. @type {(() => void)[]} */
  let steps = [];
  let capacity = () => 0;
  let arrived = () => {};
  const depth = () => {
    const { state, length } = history;
    return Number.isInteger(state) && state > 0 && state < length ? state : 0;
  };

  window.addEventListener("popstate", () => {
    arrived();
    steps[depth()]?.();
  });

  /**
   * Return to the first entry of the visit, then act. The next page in this tab can count the entries,
   * so a visit with skipped questions gets as many entries as one that showed all questions.
   */
  function unwind(/** @type {() => void} */ act) {
    steps = [];
    if (depth() === 0) return act();
    while (depth() < capacity()) history.pushState(depth() + 1, "");
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

    /** Show the next step; drop later steps from which the person went back. @param {() => void} show */
    forward(show) {
      const next = depth() + 1;
      steps = [...steps.slice(0, next), show];
      history.pushState(next, "");
      show();
    },

    /** Show the previous step, like a phone's Back button. */
    back: () => history.go(-1),

    unwind,
  };
}
