/**
 * Shows the value of a chart's mark beside it: on hover, touch, and with the arrow keys on focus.
 *
 * Charts are complete without it: the server wrote all texts, so screen readers skip the copy.
 */

(() => {
  const MARKS = "li, .segment, .point, .gap, path[aria-label]";
  const GAP = 4;

  /** @type {Map<Element, string>} */
  const texts = new Map();
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
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
    const text = mark && texts.get(mark);
    tip.hidden = !text;
    if (!text) return;
    mark.classList.add("lit");
    tip.textContent = text;
    const bar = mark.matches("li");
    const anchor = mark.querySelector(bar ? ".end:last-of-type, .dot" : "circle, rect") ?? mark;
    const place = anchor.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    // After a bar, above other marks.
    const x = bar ? place.right + 2 * GAP : place.left + (place.width - width) / 2;
    const y = bar ? place.top + (place.height - height) / 2 : place.top - height - GAP;
    const end = document.documentElement.clientWidth - width - GAP;
    tip.style.left = `${Math.max(GAP, Math.min(x, end)) + scrollX}px`;
    tip.style.top = `${y + scrollY}px`;
  }

  /** @type {NodeListOf<HTMLElement>} */
  const charts = document.querySelectorAll(".bars ul, .scale, svg.lines, .chart");
  for (const chart of charts) {
    const marks = [...chart.querySelectorAll(MARKS)].filter((mark) => {
      const title = mark.querySelector(":scope > title");
      title?.remove(); // Browsers show it too.
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

  document.addEventListener("pointerover", ({ target }) => {
    if (!(target instanceof Element) || target === tip) return;
    show(target.closest(MARKS));
  });
  document.addEventListener("keydown", ({ key }) => key === "Escape" && show());
})();
