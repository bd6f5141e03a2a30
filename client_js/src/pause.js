/**
 * Waits between two tries: for some seconds, until the network is back, or until someone says "now".
 */

/**
 * @param {Pick<Window, "setTimeout" | "clearTimeout" | "addEventListener">} window
 */
export function createPause(window) {
  let end = () => {};
  window.addEventListener("online", () => end());
  return {
    /**
     * @param {number} seconds
     * @returns {Promise<void>}
     */
    begin(seconds) {
      return new Promise((resolve) => {
        const timer = window.setTimeout(() => end(), seconds * 1000);
        end = () => {
          window.clearTimeout(timer);
          resolve();
        };
      });
    },
    end: () => end(),
  };
}

/** @typedef {ReturnType<typeof createPause>} Pause */
