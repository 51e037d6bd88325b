/** The labels of a stream: shown, and changed in a dialog. */

import { h, fill } from "./dom.js";

/** A label as people write it. @param {string} name @param {string} value */
function written(name, value) {
  return value ? `${name}=${value}` : name;
}

/** The labels of a stream as text, for a filter. @param {Record<string, string>} [labels] */
export function labelText(labels = {}) {
  return Object.entries(labels).map(([name, value]) => written(name, value)).join(" ");
}

/**
 * Show labels, if they are others than those that are shown.
 * @param {HTMLElement} element
 * @param {Record<string, string>} [labels]
 */
export function showLabels(element, labels = {}) {
  const text = labelText(labels);
  if (element.dataset.said === text) return;
  element.dataset.said = text;
  const chip = ([name, value]) =>
    h("a", { class: "stream-label", href: `#/?q=${encodeURIComponent(written(name, value))}` }, written(name, value));
  fill(element, Object.entries(labels).map(chip));
}

/**
 * Return a button that changes the labels of a stream.
 * @param {string} id
 * @param {import("../api.js").Api} api
 * @param {(labels: Record<string, string>) => void} done hears the labels that it has then
 */
export function labelButton(id, api, done) {
  const button = h("button", { type: "button", class: "quiet", onclick: open }, "Labels…");

  async function open() {
    const labels = await api.get(`streams/${id}/labels`);
    const text = h("textarea", { class: "mono", rows: 5, spellcheck: "false", placeholder: "team=payments" });
    text.value = Object.entries(labels).map(([name, value]) => written(name, value)).join("\n");
    const wrong = h("p", { class: "wrong", role: "alert" });
    const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
    const form = h(
      "form",
      { method: "dialog" },
      h("h2", { id: "labels-title" }, `Labels of ${id}`),
      h("p", { class: "muted" }, "They group streams in the list. The stream runs on."),
      h("label", { class: "field" }, "One per line, name=value", text),
      wrong,
      h("div", { class: "buttons end" }, cancel, h("button", { type: "submit", class: "main" }, "Save")),
    );
    const dialog = h("dialog", { "aria-labelledby": "labels-title" }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        done(await api.put(`streams/${id}/labels`, { body: parsed(text.value) }));
        dialog.close();
      } catch (error) {
        wrong.textContent = `Not saved: ${error.message}`;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      button.focus();
    });
    document.body.append(dialog);
    dialog.showModal();
    text.focus();
  }

  return button;
}

function parsed(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [name, ...rest] = line.split("=");
      return [name.trim(), rest.join("=").trim()];
    }),
  );
}
