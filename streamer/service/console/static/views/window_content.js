/** What is in an open window: its last messages, or the result of its mapping so far. */

import { h, fill, say } from "../parts/dom.js";
import { messageCard } from "../parts/message_card.js";
import { visible } from "../parts/outside_text.js";
import { clock, number } from "../parts/words.js";

const INTERVAL = 500;
const PATIENCE = 20_000;

/**
 * Show what is in a window, in a dialog.
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @param {{key: string | null, start: string | null, buffer?: string}} row the window
 */
export async function showContent(id, api, row) {
  const note = h("p", { class: "muted", role: "status" }, "The next micro-batch answers …");
  const body = h("div", { class: "window-content" });
  const again = h("button", { type: "button", onclick: () => look() }, "Refresh");
  const close = h("button", { type: "submit", class: "main" }, "Close");
  const dialog = h(
    "dialog",
    { class: "wide", "aria-labelledby": "content-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "content-title" }, row.key === null ? "Window" : ["Window of ", visible(row.key)]),
      note,
      body,
      h("div", { class: "buttons end" }, again, close),
    ),
  );
  const opener = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (opener?.isConnected) return;
    // Its row has been drawn anew meanwhile.
    const label = opener?.getAttribute("aria-label");
    if (label) document.querySelector(`[aria-label="${CSS.escape(label)}"]`)?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();

  async function look() {
    say(note, "The next micro-batch answers …");
    try {
      const answer = await requestContent(id, api, row, () => !dialog.open);
      if (!dialog.open) return;
      say(note, answer ? `As of ${clock(Date.parse(answer.answered_at))}. Secrets of the config are left out.` : "No micro-batch has answered yet.");
      if (answer) fill(body, contentsOf(answer, row).map(drawnContent));
      if (answer && !contentsOf(answer, row).length) say(note, "The window has closed meanwhile.");
    } catch (error) {
      say(note, error.message);
    }
  }

  await look();
}

/**
 * Ask the shards what is in a window, and return their answer.
 * @returns {Promise<object | null>} null when none has come in time
 */
export async function requestContent(id, api, row, gone) {
  const query = { key: row.key ?? undefined, exact: row.key === null ? undefined : "true", start: row.start ?? undefined, content: "true" };
  const path = `streams/${id}/windows`;
  const before = (await api.get(path, query)).answered_at ?? null;
  await api.post(path, { query });
  const until = performance.now() + PATIENCE;
  while (!gone() && performance.now() < until) {
    const answer = await api.get(path, query);
    if (answer.answered_at && answer.answered_at !== before) return answer;
    await new Promise((resolve) => setTimeout(resolve, INTERVAL));
  }
  return null;
}

/** Return what an answer says of a window's buffer. */
export function contentsOf(answer, row) {
  return (answer.contents ?? []).filter((one) => !row.buffer || one.buffer === row.buffer);
}

/** Draw what is in a window. */
export function drawnContent(content) {
  if (content.error) return h("p", { class: "wrong" }, visible(content.error));
  if (content.mapping !== undefined) {
    return [
      h("p", null, `${number(content.messages, "message")}, aggregated as they came: the result of the mapping so far`),
      content.result ? messageCard(content.result) : h("p", { class: "muted" }, "Nothing: the mapping deletes it."),
    ];
  }
  return [
    h("p", null, `The last ${number(content.last.length, "message")} of ${content.messages}`),
    content.last.toReversed().map(messageCard),
  ];
}
