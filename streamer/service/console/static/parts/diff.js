/** The lines in which two texts differ. */

import { h } from "./dom.js";
import { growing } from "./growing.js";
import { visible } from "./outside_text.js";

const AROUND = 3;
/** Pairs of lines that are compared at most: beyond, all that is between is taken for changed. */
const MOST = 4_000_000;

/**
 * A line of a comparison.
 * @typedef {{kind: "same" | "old" | "new", text: string, old?: number, new?: number}} Row
 */

/**
 * Return all lines of two texts in an order that has both: what is gone stands before what came.
 * @param {string} before
 * @param {string} after
 * @returns {Row[]}
 */
export function compared(before, after) {
  const old = before.split("\n");
  const now = after.split("\n");
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (
    end < Math.min(old.length, now.length) - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end++;
  }
  const middle = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const kinds = [...Array(start).fill("same"), ...changed(...middle), ...Array(end).fill("same")];
  const place = { old: 0, now: 0 };
  return kinds.map((kind) => {
    if (kind === "old") return { kind, text: old[place.old], old: ++place.old };
    if (kind === "new") return { kind, text: now[place.now], new: ++place.now };
    return { kind, text: old[place.old], old: ++place.old, new: ++place.now };
  });
}

/** The kinds of the lines of what differs, by the longest common subsequence. */
function changed(old, now) {
  if (old.length * now.length > MOST) {
    return [...Array(old.length).fill("old"), ...Array(now.length).fill("new")];
  }
  const width = now.length + 1;
  const longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const here = i * width + j;
      longest[here] =
        old[i] === now[j]
          ? longest[here + width + 1] + 1
          : Math.max(longest[here + width], longest[here + 1]);
    }
  }
  const kinds = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      kinds.push("same");
      i++;
      j++;
    } else if (
      j === now.length ||
      (i < old.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
    ) {
      kinds.push("old");
      i++;
    } else {
      kinds.push("new");
      j++;
    }
  }
  return kinds;
}

/**
 * Show in which lines two texts differ, with a few lines around.
 * @param {string} before
 * @param {string} after
 * @param {string} label what is compared
 * @returns {HTMLElement}
 */
export function diffTable(before, after, label) {
  const rows = compared(before, after);
  const near = rows.map(() => false);
  rows.forEach((row, index) => {
    if (row.kind === "same") return;
    const [from, to] = [Math.max(index - AROUND, 0), Math.min(index + AROUND, rows.length - 1)];
    near.fill(true, from, to + 1);
  });
  const shown = [];
  const last = near.lastIndexOf(true);
  rows.forEach((row, index) => {
    if (near[index]) shown.push(row);
    else if (near[index - 1] && index < last) shown.push(null);
  });
  if (!shown.length) return h("p", { class: "muted" }, "The texts are the same.");
  const body = h("tbody");
  const end = growing(body, shown, (row) => (row ? line(row) : gap()));
  const caption = h("caption", { class: "unseen" }, label);
  return h(
    "div",
    { class: "diff", tabindex: "0", role: "region", "aria-label": label },
    h("table", null, caption, body),
    end,
  );
}

const SIGNS = { same: ["", ""], old: ["−", "gone"], new: ["+", "new"] };

function line(row) {
  const [sign, said] = SIGNS[row.kind];
  return h(
    "tr",
    { class: `diff-${row.kind}` },
    h("td", { class: "diff-number" }, row.old ?? ""),
    h("td", { class: "diff-number" }, row.new ?? ""),
    h(
      "td",
      { class: "diff-sign" },
      h("span", { "aria-hidden": "true" }, sign),
      said && h("span", { class: "unseen" }, said),
    ),
    h("td", { class: "diff-text" }, visible(row.text)),
  );
}

function gap() {
  return h("tr", { class: "diff-gap" }, h("td", { colspan: "4" }, "⋯"));
}
