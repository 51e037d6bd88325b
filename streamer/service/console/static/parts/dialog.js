/** Questions that are asked before something is done. */

import { h } from "./dom.js";

/**
 * Ask, and return whether the answer is yes. Escape is no.
 * @param {{title: string, text: any, yes: string, danger?: boolean, typed?: string}} question
 *   `text` is what `h` takes; `yes` says what will be done; `typed` must be typed in before
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, yes, danger = false, typed }) {
  const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, yes);
  const field = typed && h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  if (field) {
    go.disabled = true;
    field.addEventListener("input", () => (go.disabled = field.value !== typed));
  }
  const cancel = h("button", { type: "button", autofocus: !field }, "Cancel");
  const dialog = h(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      h("div", { class: "dialog-text" }, text),
      field && h("label", { class: "field" }, `Type ${typed} to go on`, field),
      h("div", { class: "buttons end" }, cancel, go),
    ),
  );
  return asked(dialog, cancel, "yes");
}

function asked(dialog, cancel) {
  return new Promise((resolve) => {
    let yes = false;
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      yes = true;
      dialog.close();
    });
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(yes);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
