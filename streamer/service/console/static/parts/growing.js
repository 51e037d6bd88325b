/** Long lists of which only so much is drawn as was looked at. */

import { h } from "./dom.js";

const CHUNK = 100;
const AHEAD = "800px";

/**
 * Draw the first items now, and more each time that the end comes into sight.
 * @param {Element} into takes what is drawn
 * @param {any[]} items
 * @param {(item: any, index: number) => Element} draw
 * @returns {HTMLElement} stands behind the list
 */
export function growing(into, items, draw) {
  let drawn = 0;
  const more = h("button", { type: "button", class: "quiet", onclick: grow }, "Show more");
  const end = h("p", { class: "growing" }, more);
  function grow() {
    into.append(...items.slice(drawn, drawn + CHUNK).map((one, index) => draw(one, drawn + index)));
    drawn += CHUNK;
    end.hidden = drawn >= items.length;
    if (end.hidden) watch.disconnect();
  }
  const watch = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && grow(), {
    rootMargin: AHEAD,
  });
  grow();
  if (!end.hidden) watch.observe(end);
  return end;
}
