/** What the page of the editor is made of. */

import { h } from "./dom.js";

const KEYS =
  "Ctrl+Space proposes, Tab indents, Shift+Tab takes indentation back; " +
  "Escape, then Tab leaves the editor.";

/**
 * Put the page together.
 * @param {HTMLElement} root
 * @param {object} given
 * @param {string} given.id of the stream; empty for a new one
 * @param {{revision: number, author: string, source: string, of_api: boolean} | null} given.running
 * @param {HTMLElement} given.editor
 * @param {HTMLElement} given.findings
 * @param {() => void} given.deploy
 * @param {() => void} given.discard
 * @returns {Record<"title" | "name" | "wrong" | "change" | "deploy" | "discard", HTMLElement>}
 *   `name` takes the id of a new stream, `wrong` what went wrong, `change` what a change comes to
 */
export function editorPage(root, { id, running, editor, findings, deploy, discard }) {
  const found = {
    title: h("h2", null, id ? `Revision ${running.revision}` : "Config"),
    name: nameField(),
    wrong: h("div", { role: "alert" }),
    change: h("div", { class: "card-body" }),
    deploy: button(id ? "Deploy…" : "Create stream", deploy, "main"),
    discard: button("Discard edits", discard),
  };
  const bar = h(
    "header",
    null,
    found.title,
    running?.author && h("span", { class: "muted" }, `deployed by ${running.author}`),
    h("div", { class: "buttons" }, id && found.discard, found.deploy),
  );
  const keys = h("p", { id: "editor-keys", class: "muted editor-keys" }, KEYS);
  const text = h("section", { class: "card", "aria-label": "Editor" }, bar, editor, keys);
  const side = h("div", { class: "editor-side" }, findings, id && changeCard(found.change));
  if (!id) root.append(h("h1", null, "New stream"), labelled("Id", found.name));
  root.append(found.wrong, h("div", { class: "editor-page" }, text, side));
  if (running && !running.of_api) {
    found.wrong.append(ofFile(running.source));
    found.deploy.hidden = found.discard.hidden = true;
  }
  return found;
}

function button(text, onclick, style) {
  return h("button", { type: "button", class: style, onclick }, text);
}

function nameField() {
  const typed = { type: "text", class: "mono", autocomplete: "off", spellcheck: "false" };
  return h("input", { ...typed, placeholder: "orders_eu" });
}

function labelled(text, field) {
  return h("label", { class: "field new-name" }, text, field);
}

function changeCard(body) {
  const title = h("h2", { id: "change-title" }, "What the change comes to");
  const head = h("header", null, title);
  return h("section", { class: "card", "aria-labelledby": "change-title" }, head, body);
}

function ofFile(source) {
  return h(
    "p",
    { class: "note" },
    "This stream is that of the file ",
    h("code", null, source),
    ". Change the file; it cannot be deployed from here.",
  );
}
