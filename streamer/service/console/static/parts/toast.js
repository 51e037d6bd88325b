/** Short messages about what was done, which screen readers read aloud, and which can be read again. */

import { h, fill } from "./dom.js";

const SHOWN = 10_000; // ms, and more for what takes longer to read
const A_LETTER = 70; // ms
const KEPT = 20;

/** What was said, newest first. @type {{text: string, kind: string, at: Date}[]} */
const said = [];
let again = null;

/**
 * Show a message for a while, and not less while it is pointed at or focused; errors stay until they
 * are closed.
 * @param {string} text
 * @param {"good" | "bad"} [kind]
 */
export function toast(text, kind = "good") {
  said.unshift({ text, kind, at: new Date() });
  said.length = Math.min(said.length, KEPT);
  offerAgain();
  const close = h("button", { type: "button", class: "quiet", onclick: () => item.remove() }, "Close");
  const item = h("div", { class: `toast ${kind}` }, h("span", null, text), close);
  document.getElementById("toasts").append(item);
  if (kind === "good") goes(item, Math.max(SHOWN, text.length * A_LETTER));
}

function goes(item, after) {
  let timer = 0;
  const stay = () => clearTimeout(timer);
  const go = () => {
    stay();
    timer = setTimeout(() => item.remove(), after);
  };
  item.addEventListener("pointerenter", stay);
  item.addEventListener("focusin", stay);
  item.addEventListener("pointerleave", go);
  item.addEventListener("focusout", go);
  go();
}

function offerAgain() {
  if (!again) {
    again = h("button", { type: "button", class: "quiet", onclick: showAgain });
    document.querySelector(".top-right").prepend(again);
  }
  fill(again, `Notices (${said.length})`);
}

function showAgain() {
  const close = h("button", { type: "submit" }, "Close");
  const dialog = h(
    "dialog",
    { class: "wide", "aria-labelledby": "notices-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "notices-title" }, "Notices"),
      h(
        "ol",
        { class: "notices" },
        said.map(({ text, kind, at }) =>
          h(
            "li",
            { class: kind },
            h("time", { class: "muted", datetime: at.toISOString() }, at.toLocaleTimeString()),
            " ",
            text,
          ),
        ),
      ),
      h("div", { class: "buttons end" }, close),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}
