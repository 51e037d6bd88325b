/** The result so far of a mapping by which windows aggregate their messages. */

import { h, fill, say } from "../parts/dom.js";
import { visible } from "../parts/outside_text.js";
import { clock } from "../parts/words.js";
import { contentsOf, drawnContent, requestContent } from "./window_content.js";

/**
 * Return what is shown of such a mapping, hidden for other nodes.
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @param {any[]} nodes those of the stream's graph
 * @param {(node: any) => void} choose shows another node
 */
export function runningResult(id, api, nodes, choose) {
  const output = nodes.find((one) => one.kind === "output" && !one.aside);
  const results = h("a", { href: "#", onclick: (event) => go(event) }, "the results at the output");
  const about = h(
    "p",
    null,
    "This mapping is pre-aggregated: windows keep its sums and counts, and not the messages, so that no message passes it one by one. See ",
    results,
    " when windows close.",
  );
  const note = h("p", { class: "muted", role: "status" });
  const body = h("div", { class: "window-content" });
  const element = h("div", { class: "card running-result", hidden: true }, about, h("h3", null, "The largest open window"), note, body);
  let node = null;
  let isRunning = false;

  function go(event) {
    event.preventDefault();
    if (output) choose(output);
  }

  function show(shown, open) {
    if (node !== shown) fill(body);
    [node, isRunning] = [shown, open];
    element.hidden = !node.pre_aggregates;
  }

  async function look() {
    const asked = node;
    if (!asked?.pre_aggregates || !isRunning) return;
    const left = () => node !== asked;
    const listed = await api.get(`streams/${id}/windows`, { by: "size", limit: 1 });
    const row = (listed.windows ?? []).find(() => true);
    if (left()) return;
    if (!row) {
      fill(body);
      say(note, "No window is open.");
      return;
    }
    const answer = await requestContent(id, api, row, left);
    if (left() || !answer) return;
    const contents = contentsOf(answer, row);
    const name = row.key === null ? "" : ` of ${row.key}`;
    fill(note, visible(`${name ? `Window${name}, as` : "As"} of ${clock(Date.parse(answer.answered_at))}`));
    if (contents.length) fill(body, drawnContent(contents[0]));
  }

  return { element, show, look };
}
