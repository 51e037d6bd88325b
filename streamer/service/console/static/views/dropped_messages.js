/** The messages that windows dropped a while ago: how many, why, and samples of them. */

import { h, say } from "../parts/dom.js";
import { isolated, visible } from "../parts/outside_text.js";
import { table } from "../parts/table.js";
import { DROP_WORDS } from "../parts/window_bars.js";
import { clock, number, whole } from "../parts/words.js";

/**
 * Return the list, hidden while nothing was dropped.
 * @returns {{element: HTMLElement, show: (drops: any[]) => void}} `show` takes those of the API
 */
export function droppedMessages() {
  const summary = h("summary");
  const rows = table(
    "Dropped messages",
    [
      { name: "At", value: (row) => -Date.parse(row.at), fill: (cell, row) => say(cell, clock(Date.parse(row.at))) },
      { name: "Messages", style: "number", down: true, value: (row) => row.messages, fill: (cell, row) => say(cell, whole(row.messages)) },
      { name: "Why", value: (row) => row.reason, fill: (cell, row) => say(cell, DROP_WORDS[row.reason]?.[1] ?? row.reason) },
      { name: "A sample", fill: (cell, row) => drawSample(cell, row.sample) },
    ],
    (row) => `${row.at} ${row.reason}`,
  );
  const element = h("details", { class: "as-table", hidden: true }, summary, rows.element);

  function show(drops) {
    element.hidden = !drops.length;
    const sums = new Map();
    for (const { reason, messages } of drops) sums.set(reason, (sums.get(reason) ?? 0) + messages);
    say(summary, [...sums].map(([reason, count]) => dropWords(reason, count)).join(", "));
    if (element.open) rows.show(drops.toReversed());
  }

  return { element, show };
}

/** Say how many messages were dropped, and why. */
function dropWords(reason, count) {
  if (reason === "late") return `${number(count, "late message")} dropped`;
  return `${number(count, "message")} dropped: ${DROP_WORDS[reason]?.[0] ?? reason}`;
}

function drawSample(cell, sample) {
  const text = JSON.stringify(sample);
  if (cell.dataset.value === text) return;
  cell.dataset.value = text;
  if (!sample) return say(cell, "–");
  const about = [sample.key !== null && ["key ", isolated(sample.key)], sample.event_time && `event time ${sample.event_time}`].filter(Boolean);
  cell.replaceChildren(
    h("code", null, visible(sample.payload)),
    h("p", { class: "muted" }, about.map((one, index) => [index ? "; " : "", one])),
  );
}
