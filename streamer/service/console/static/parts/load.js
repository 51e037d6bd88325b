/** How busy a component is, and whether it holds those before it. */

import { h, fill } from "./dom.js";

const PARTS = [
  ["busy", "busy"],
  ["back_pressured", "back-pressured"],
  ["idle", "idle"],
];

/**
 * Draw the load of a component: a bar of three parts, and its words.
 * @param {HTMLElement} box the node
 * @param {HTMLElement} place where it is drawn
 * @param {{busy: number, back_pressured: number, idle: number, waiting: number, holds: boolean} | null} load
 *   parts of the last minute; null where nobody knows
 */
export function drawLoad(box, place, load) {
  place.hidden = !load;
  box.classList.toggle("holds", Boolean(load?.holds));
  if (!load) return;
  const said = `${PARTS.map(([name, word]) => `${word} ${percent(load[name])}`).join(", ")}${load.holds ? ", holds the others" : ""}`;
  if (place.dataset.said === said) return;
  place.dataset.said = said;
  const bar = h(
    "span",
    { class: "load-bar", "aria-hidden": "true" },
    PARTS.map(([name]) => h("span", { class: name, style: { width: percent(load[name]) } })),
  );
  fill(place, bar, h("span", { class: "load-words" }, words(load)), load.holds && h("b", { class: "holder" }, holding(load)));
  place.title = `In the last minute: ${said}`;
}

function words(load) {
  const found = [`busy ${percent(load.busy)}`];
  if (load.back_pressured >= 0.1) found.push(`back-pressured ${percent(load.back_pressured)}`);
  return found.join(" · ");
}

function holding(load) {
  return load.waiting > load.busy / 2 ? "waits to send again: holds the others" : "holds the others";
}

function percent(share) {
  return `${Math.round(share * 100)}%`;
}
