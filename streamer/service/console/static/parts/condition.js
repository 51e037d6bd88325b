/** The condition of a stream: a word in a colour, and what somebody on call asks next. */

import { h, fill, say } from "./dom.js";
import { isolated } from "./outside_text.js";
import { clock, number } from "./words.js";

/** Conditions with their words and colours, the most urgent first. */
const CONDITIONS = {
  failed: ["failed", "bad"],
  refused: ["refused", "bad"],
  retrying: ["retrying", "bad"],
  output_blocked: ["output blocked", "bad"],
  input_blocked: ["input blocked", "bad"],
  degraded: ["degraded", "warn"],
  catching_up: ["catching up", "warn"],
  starting: ["starting", "accent"],
  draining: ["draining", "accent"],
  pausing: ["pausing", "accent"],
  stopping: ["stopping", "accent"],
  running: ["running", "good"],
  idle: ["idle", "good"],
  paused: ["paused", "plain"],
  ended: ["ended", "plain"],
  stopped: ["stopped", "plain"],
};
const NAMES = Object.keys(CONDITIONS);
const FAILING = new Set(NAMES.slice(0, 6));

/** Options of a filter by condition, the most urgent first. */
export function conditionOptions() {
  return NAMES.map((name) => h("option", { value: name }, CONDITIONS[name][0]));
}

/** @param {{condition: {name: string}}} status @returns {number} smaller for what is more urgent */
export function urgency({ condition }) {
  return NAMES.indexOf(condition.name);
}

/** Whether somebody has to look. @param {{condition: {name: string}, refusal?: object}} status */
export function isFailing({ condition, refusal }) {
  return FAILING.has(condition.name) || Boolean(refusal);
}

/**
 * Return what shows the condition of a stream, and a mark for a change that was refused.
 * @param {{condition: {name: string}, refusal?: {text: string}}} status
 * @returns {HTMLElement[]}
 */
export function conditionMark({ condition, refusal }) {
  const [word, style] = CONDITIONS[condition.name] ?? [condition.name, "plain"];
  const mark = h("span", { class: `state ${style}` }, word);
  if (!refusal || condition.name === "refused") return [mark];
  return [mark, " ", h("span", { class: "state bad", title: refusal.text }, "change refused")];
}

/**
 * Return how many streams are in which condition, the most urgent first: `1 failed, 3 running`.
 * @param {{condition: {name: string}, refusal?: object}[]} rows
 */
export function conditionCounts(rows) {
  const counts = new Map(NAMES.map((name) => [name, 0]));
  for (const { condition } of rows) counts.set(condition.name, (counts.get(condition.name) ?? 0) + 1);
  const words = [...counts].filter(([, count]) => count).map(([name, count]) => `${count} ${CONDITIONS[name]?.[0] ?? name}`);
  const refused = rows.filter((row) => row.refusal && row.condition.name !== "refused").length;
  if (refused) words.push(number(refused, "refused change"));
  return words.join(", ");
}

/** The reason of a condition in a line, for a list. @param {object} status @returns {string} */
export function conditionReason({ condition, refusal, reason }) {
  const text = condition.error || condition.phase || reason || "";
  const detail = condition.path ? `at ${condition.label || condition.path}: ${text}` : text;
  return [detail, refusal && condition.name !== "refused" ? refusal.findings[0] : ""].filter(Boolean).join("; ");
}

/** The text that a figure is of an earlier time; empty when it is not. @param {{as_of?: string}} status */
export function asOfText({ as_of: asOf }) {
  return asOf ? `as of the last micro-batch at ${clock(Date.parse(asOf))}` : "";
}

/**
 * A panel with the error of a stream, its component and message, and with the file that was refused.
 * @param {string} id the stream
 * @returns {{element: HTMLElement, show: (status: object) => void}}
 */
export function conditionPanel(id) {
  const element = h("div", { class: "condition", role: "status" });
  let before = "";

  function show(status) {
    const { condition, refusal } = status;
    // The figures of `text` change all the time: what is read aloud, or selected, is not to.
    const key = JSON.stringify([condition.name, condition.error, condition.path, condition.sample, refusal, asOfText(status)]);
    if (key !== before) fill(element, drawn(id, status));
    before = key;
    const text = element.querySelector(".condition-text");
    if (text) say(text, sentence(condition.text));
    element.hidden = !element.children.length;
  }

  return { element, show };
}

function drawn(id, status) {
  const { condition, refusal } = status;
  const parts = [];
  const error = condition.name === "refused" ? "" : condition.error || (condition.name === "running" ? "" : status.reason);
  if (error || condition.phase) {
    const bad = FAILING.has(condition.name);
    parts.push(
      h(
        "section",
        { class: bad ? "notice bad" : "notice", "aria-label": "Condition" },
        h("p", null, h("b", { class: "condition-text" }), condition.path && [" at ", place(id, condition)]),
        error && h("p", { class: "condition-error" }, isolated(error)),
        condition.sample && h("p", { class: "muted" }, "Message: ", h("code", null, isolated(condition.sample))),
      ),
    );
  }
  if (refusal) {
    parts.push(
      h(
        "section",
        { class: "notice bad", "aria-label": "Refused file" },
        h("p", null, h("b", null, isolated(refusal.text)), ` (${clock(Date.parse(refusal.since))})`),
        h("ul", { class: "findings-of-file mono" }, refusal.findings.map((one) => h("li", null, isolated(one)))),
      ),
    );
  }
  const asOf = asOfText(status);
  if (asOf) parts.push(h("p", { class: "muted as-of" }, `Figures ${asOf}, until the next micro-batch.`));
  return parts;
}

function place(id, { path, label }) {
  const href = `#/streams/${id}/messages?node=${encodeURIComponent(path)}`;
  return h("a", { href }, label ? `${label} (${path})` : path);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Mark the node of a graph at which a stream fails, and no other.
 * @param {Map<string, {box: HTMLElement}[]>} nodes the boxes of the graph by config path
 * @param {{name: string, path: string, text: string} | undefined} condition
 */
export function markNode(nodes, condition) {
  const path = condition && FAILING.has(condition.name) ? nearest(nodes, condition.path) : "";
  for (const [own, drawnBoxes] of nodes) {
    for (const { box } of drawnBoxes) {
      const here = own === path && path !== "";
      box.classList.toggle("is-blamed", here);
      const told = box.querySelector(".blame");
      if (!here) told?.remove();
      else if (told) say(told, condition.text);
      else box.append(h("span", { class: "blame" }, condition.text));
    }
  }
}

/** The node that stands for a path: its own, or that of the component around it. */
function nearest(nodes, path) {
  for (let at = path; at; at = at.slice(0, Math.max(at.lastIndexOf("."), 0))) if (nodes.has(at)) return at;
  return "";
}
