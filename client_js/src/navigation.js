/**
 * The visit's steps as entries of the browser's history, so that the phone's Back goes one page back.
 *
 * All entries have the same address and title, and a number as their only state: the history never
 * shows what somebody answered.
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
  /** What shows each step of the visit, the start page first. @type {(() => void)[]} */
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
   * Return to the first entry of the visit, then act there. The next page in this tab can count the
   * entries, so a visit that skipped questions gets as many as one that saw them all.
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
      // A reload keeps the entries of the visit before, whose answers are gone.
      unwind(() => {
        steps = [show];
        capacity = most;
        show();
      });
    },

    /** Show the next step; later steps that the person went back from are dropped. @param {() => void} show */
    forward(show) {
      const next = depth() + 1;
      steps = [...steps.slice(0, next), show];
      history.pushState(next, "");
      show();
    },

    /** Show the step before, as the phone's Back does. */
    back: () => history.go(-1),

    unwind,
  };
}
