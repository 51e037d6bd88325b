/** Short messages about what was done, which screen readers read aloud. */

import { h } from "./dom.js";

const SHOWN = 6_000;

/**
 * Show a message for a while; errors stay until they are closed.
 * @param {string} text
 * @param {"good" | "bad"} [kind]
 */
export function toast(text, kind = "good") {
  const close = h("button", { type: "button", class: "quiet", onclick: () => item.remove() }, "Close");
  const item = h("div", { class: `toast ${kind}` }, h("span", null, text), close);
  document.getElementById("toasts").append(item);
  if (kind === "good") setTimeout(() => item.remove(), SHOWN);
}
