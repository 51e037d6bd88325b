/** Facts as a list of names and values: one that is not known is a dash that says why. */

import { h, fill } from "./dom.js";

/** A value that nobody knows. @param {string} why @returns {HTMLElement} */
export function unknown(why) {
  return h("span", { class: "muted", title: why }, "–");
}

/**
 * Return a list of facts.
 * @param {string} said what it is, for screen readers
 * @returns {{element: HTMLElement, show: (facts: [string, any][]) => void}}
 */
export function factList(said) {
  const element = h("dl", { class: "facts-list", "aria-label": said });
  let last = "";
  function show(facts) {
    const text = JSON.stringify(facts.map(([name, value]) => [name, value?.textContent ?? value]));
    // What has not changed stays: it may be selected.
    if (text === last) return;
    last = text;
    fill(element, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
  }
  return { element, show };
}
