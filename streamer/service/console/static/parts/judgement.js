/** What a change of a config comes to, for the stream that runs it. */

import { h } from "./dom.js";
import { diffTable } from "./diff.js";
import { heldView } from "./held_state.js";
import { visible } from "./outside_text.js";

/** What each effect means, and its colour. */
export const EFFECTS = {
  none: ["", "Nothing changes for the stream."],
  restart: ["", "The stream runs on unchanged; the change takes effect when the service restarts."],
  "in place": [
    "good",
    "Open windows and offsets are kept; the next micro-batch runs the new config.",
  ],
  migrate: ["warn", "Open windows and offsets are kept, and follow the new setting."],
  reset: ["bad", "Windows and state start empty."],
};

/** @param {string} effect @returns {HTMLElement} */
export function effectBadge(effect) {
  return h(
    "span",
    { class: `effect ${EFFECTS[effect]?.[0] ?? ""}` },
    effect === "none" ? "no change" : effect,
  );
}

/**
 * Show a judgement, as `POST streams/{id}/judgement` answers it.
 * @param {{effect: string, loses: string[], changes: object[]}} judgement
 * @returns {HTMLElement}
 */
export function judgementView({ effect, loses, changes, held }) {
  return h(
    "div",
    { class: "judgement" },
    h("p", null, effectBadge(effect), " ", EFFECTS[effect]?.[1] ?? ""),
    effect !== "none" && heldView(held, effect === "reset"),
    loses.length > 0 && [
      h("p", null, "Lost, unless you drain it first:"),
      h(
        "ul",
        { class: "loses" },
        loses.map((one) => h("li", null, one)),
      ),
    ],
    changes.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, changesText(changes.length)),
        h("ul", { class: "changes" }, changes.map(change)),
      ),
  );
}

function changesText(count) {
  return count === 1 ? "One change" : `${count} changes`;
}

function change({ path, label, old, new: now, effect, note }) {
  const long = [old, now].some((one) => one && (one.trim().includes("\n") || one.length > 60));
  return h(
    "li",
    null,
    h(
      "div",
      { class: "change-head" },
      h("code", null, path),
      label && h("span", { class: "muted" }, label),
      effectBadge(effect),
    ),
    note && h("p", { class: "muted" }, note),
    long ? diffTable(old ?? "", now ?? "", `Change of ${path}`) : inline(old, now),
  );
}

function inline(old, now) {
  if (old === null) return h("p", null, h("code", { class: "good" }, visible(now.trim())), " is new");
  if (now === null) return h("p", null, h("code", { class: "bad" }, visible(old.trim())), " is gone");
  return h(
    "p",
    null,
    h("code", { class: "bad" }, visible(old.trim())),
    " → ",
    h("code", { class: "good" }, visible(now.trim())),
  );
}
