/** A message: its content, its error and its metadata. */

import { h } from "./dom.js";
import { isolated, visible } from "./outside_text.js";

/**
 * Return what shows a message.
 * @param {{content: string, error?: string, metadata?: Record<string, string>}} message
 * @returns {HTMLElement}
 */
export function messageCard(message) {
  const meta = Object.entries(message.metadata ?? {});
  return h(
    "div",
    { class: "message" },
    h("pre", { tabindex: "0" }, visible(pretty(message.content))),
    message.error && h("p", { class: "wrong" }, visible(message.error)),
    meta.length ? h("dl", { class: "meta" }, meta.map(([name, value]) => [h("dt", null, "@", isolated(name)), h("dd", null, visible(value))])) : null,
  );
}

function pretty(text) {
  // A number that JavaScript would change is left as it is.
  if (/\d{16}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text === "" ? "(empty)" : text;
  }
}
