/**
 * Shows the value of a chart's mark beside it: on hover, touch, and arrow keys on focus.
 *
 * The server wrote all texts, so screen readers skip the copy.
 */

(() => {
  const MARKS = "li, .segment, .point, .gap, .mark, path[aria-label]";

  const texts = new Map();
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.ariaHidden = "true";
  document.body.append(tip);

  /** @param {Element} mark */
  function textOf(mark) {
    if (!mark.matches("li")) return mark.getAttribute("aria-label") ?? "";
    const [value, ...rest] = [...mark.querySelectorAll(".value > *")].map((e) => e.textContent);
    return rest.length ? `${value} (${rest.join("; ")})` : (value ?? "");
  }

  /** @param {Element | null} [mark] */
  function show(mark) {
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    const text = texts.get(mark);
    tip.hidden = !text;
    if (!mark || !text) return;
    mark.classList.add("lit");
    tip.textContent = text;
    const bar = mark.matches("li");
    const anchor = mark.querySelector(bar ? ".end:last-of-type, .dot" : "circle, rect") ?? mark;
    const box = anchor.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    // After a bar, above other marks.
    const x = bar ? box.right + 8 : box.left + (box.width - width) / 2;
    const y = bar ? box.top + (box.height - height) / 2 : box.top - height - 4;
    const end = document.documentElement.clientWidth - width - 4;
    tip.style.left = `${Math.max(4, Math.min(x, end)) + scrollX}px`;
    tip.style.top = `${y + scrollY}px`;
  }

  /** @type {NodeListOf<HTMLElement>} */
  const charts = document.querySelectorAll(".bars ul, .scale, svg.lines, .chart");
  for (const chart of charts) {
    const marks = [...chart.querySelectorAll(MARKS)].filter((mark) => {
      const title = mark.querySelector(":scope > title");
      title?.remove(); // Shown by browsers.
      const text = mark.closest(".legend") ? "" : (title?.textContent ?? textOf(mark));
      return text && texts.set(mark, text);
    });
    /** @type {HTMLElement} */
    const stop = chart.querySelector(".legend") ?? chart;
    let current = 0;
    if (marks.length) stop.tabIndex = 0;
    stop.onfocus = () => stop.matches(":focus-visible") && show(marks[current]);
    stop.onblur = () => show();
    stop.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      current = Math.max(0, Math.min(current + step, marks.length - 1));
      show(marks[current]);
    };
  }

  // After Escape, only another mark shows a text.
  /** @type {Element | null} */
  let over = null;
  document.addEventListener("pointerover", ({ target }) => {
    if (!(target instanceof Element) || target === tip) return;
    const mark = target.closest(MARKS);
    if (mark !== over) show((over = mark));
  });
  document.addEventListener("keydown", ({ key }) => key === "Escape" && show());
})();
