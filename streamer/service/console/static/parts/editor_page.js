/** What the page of the editor is made of. */

import { h } from "./dom.js";

const KEYS =
  "Ctrl+Space proposes, Tab indents, Shift+Tab takes indentation back; " +
  "Escape, then Tab leaves the editor. Ctrl+Enter deploys.";

/**
 * Put the page together. Reading order is that of work: the text, then what was found, then Deploy.
 * @param {HTMLElement} root
 * @param {object} given
 * @param {string} given.id of the stream; empty for a new one
 * @param {{revision: number, author: string, source: string, of_api: boolean} | null} given.running
 * @param {HTMLElement} given.editor
 * @param {HTMLElement} given.findings
 * @param {HTMLElement} given.trials
 * @param {any} given.before what stands above the text of a new stream: its id, its templates
 * @param {() => void} given.deploy
 * @param {() => void} given.discard
 * @returns {Record<"title" | "wrong" | "change" | "deploy" | "discard", HTMLElement>}
 *   `wrong` takes what went wrong, `change` what a change comes to
 */
export function editorPage(root, given) {
  const { id, running, editor, findings, trials, before, deploy, discard } = given;
  const found = {
    title: h("h2", { tabindex: "-1" }, id ? `Revision ${running.revision}` : "Config"),
    wrong: h("div", { role: "alert" }),
    change: h("div", { class: "card-body" }),
    deploy: button(id ? "Deploy…" : "Create stream", deploy, "main"),
    discard: button("Discard edits", discard),
  };
  const bar = h(
    "header",
    null,
    found.title,
    running?.author && h("span", { class: "muted" }, deployedBy(running.author)),
  );
  const keys = h("p", { id: "editor-keys", class: "muted editor-keys" }, KEYS);
  const buttons = h("div", { class: "buttons" }, id && found.discard, found.deploy);
  const parts = { class: "card editor-card", "aria-label": "Editor" };
  const text = h("section", parts, bar, editor, keys, buttons);
  const side = h("div", { class: "editor-side" }, findings, id && changeCard(found.change));
  if (!id) root.append(h("h1", null, "New stream"), ...before);
  root.append(found.wrong, h("div", { class: "editor-page" }, text, side, trials));
  if (running && !running.of_api) {
    found.wrong.append(ofFile(running.source));
    buttons.hidden = true;
  }
  return found;
}

function button(text, onclick, style) {
  return h("button", { type: "button", class: style, onclick }, text);
}

function changeCard(body) {
  const title = h("h2", { id: "change-title" }, "Effect of this change");
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

/** Who has deployed: of somebody unknown there is the address in brackets. */
function deployedBy(author) {
  return author.startsWith("(") ? `deployed from ${author.slice(1, -1)}` : `deployed by ${author}`;
}
