/** How much state a stream holds: what a change keeps, or loses. */

import { h } from "./dom.js";
import { number, size } from "./words.js";

/**
 * Show it, as `POST streams/{id}/judgement` answers it.
 * @param {{windows: number | null, messages: number, bytes: number, state_keys: number,
 *   buffers: {label: string, kind: string, windows: number | null, messages: number}[]} | null
 *   | undefined} held null when nobody knows; undefined of services that do not say
 * @param {boolean} isLost whether the change loses it, unless it is drained
 * @returns {HTMLElement | null}
 */
export function heldView(held, isLost) {
  if (held === undefined) return null;
  const verb = isLost ? "At stake" : "Kept";
  if (held === null)
    return h(
      "p",
      { class: "held muted" },
      `${verb}: not known yet. No micro-batch has ended since the stream's start.`,
    );
  return h(
    "div",
    { class: "held" },
    h("p", { class: isLost && held.messages > 0 ? "bad" : null }, `${verb}: ${heldText(held)}.`),
    held.buffers.length > 1 &&
      h(
        "ul",
        null,
        held.buffers.map(({ label, kind, windows, messages }) =>
          h("li", null, h("code", null, label), ` ${amount(windows, messages)} (${kind})`),
        ),
      ),
  );
}

/** In words: `3 open windows with 12 messages (700 B)`. */
export function heldText({ windows, messages, bytes, state_keys: keys }) {
  const parts = [];
  if (messages || windows) parts.push(`${amount(windows, messages)} (${size(bytes)})`);
  if (keys) parts.push(`state of ${number(keys, "key")}`);
  return parts.join(", and ") || "no window is open, and there is no state by key";
}

function amount(windows, messages) {
  const what = number(messages, "message");
  if (windows === null) return `open windows with ${what}; these windows are not counted`;
  return `${number(windows, "open window")} with ${what}`;
}
