/** A button that copies a block of text. */

import { copyText } from "./copying.js";
import { h } from "./dom.js";

const SHOWN_MS = 2_000;

/**
 * Return a button that copies the text of an element.
 * @param {Element} source
 * @param {string} label what screen readers say, such as "Copy hello.yaml"
 * @returns {HTMLElement}
 */
export function copyButton(source, label) {
  let timer = 0;
  const word = h("span", { "aria-hidden": "true" }, "Copy");
  const said = h("span", { class: "unseen", role: "status" });
  const show = (text) => {
    word.textContent = text || "Copy";
    said.textContent = text;
  };
  async function copy() {
    const done = await copyText(source.textContent);
    button.focus({ preventScroll: true });
    if (!done) getSelection().selectAllChildren(source);
    clearTimeout(timer);
    show(done ? "Copied" : "Selected: press Ctrl+C");
    timer = setTimeout(show, SHOWN_MS, "");
  }
  const button = h("button", { type: "button", class: "copy", "aria-label": label, onclick: copy }, word);
  return h("div", { class: "copy-place" }, button, said);
}
