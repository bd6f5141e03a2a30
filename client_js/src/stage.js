/**
 * The one place views appear: each replaces the last, names the document and takes focus.
 */

/**
 * @typedef {{content: HTMLElement, title: string, focus?: HTMLElement}} View
 *   `focus` is where reading goes on; without it, the view's heading
 */

/**
 * @param {HTMLElement} main
 */
export function createStage(main) {
  return {
    /** @param {View} view */
    show({ content, title, focus }) {
      main.replaceChildren(content);
      document.title = title;
      const target = focus ?? content.querySelector("h1");
      window.scrollTo(0, 0);
      target?.focus({ preventScroll: focus === undefined });
    },
    clear() {
      main.replaceChildren();
    },
  };
}

/** @typedef {ReturnType<typeof createStage>} Stage */
