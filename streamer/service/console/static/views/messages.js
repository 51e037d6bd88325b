/** Samples of the messages that pass a stream's nodes: before and after each. */

import { h, fill, say } from "../parts/dom.js";
import { messageCard } from "../parts/message_card.js";
import { poll } from "../parts/poll.js";
import { clock, number } from "../parts/words.js";
import { runningResult } from "./running_result.js";

const INTERVAL = 1_000;
/** Seconds for which samples are taken after each look. */
const OPEN = 10;
const MOST = 60;
/** A look into a window is a question to its shard: it is asked less often. */
const RESULT_INTERVAL = 4_000;

/**
 * @param {HTMLElement} root
 * @param {{params: {id: string, node?: string}, api: import("../api.js").Api,
 *   onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { params, api, onLeave }) {
  const graph = await api.get(`streams/${params.id}/graph`);
  const nodes = flat(graph.stages.flatMap((stage) => stage.nodes));
  const note = h("p", { class: "muted", role: "status" });
  const only = h("input", { type: "checkbox" });
  const hold = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const title = h("h2");
  const about = h("p", { class: "muted mono" });
  const samples = h("ol", { class: "samples" });
  const picker = h("nav", { class: "card picker", "aria-label": "Nodes" });
  const tools = h("div", { class: "tools" }, hold, h("label", { class: "check" }, only, "Only what failed"), note);
  const running = runningResult(params.id, api, nodes, choose);
  const side = h("section", { class: "page", "aria-label": "Samples" }, title, about, tools, running.element, samples);
  root.append(h("div", { class: "tap" }, picker, side));
  let node = nodes.find((one) => one.path === params.node) ?? nodes[0];
  let newest = 0;
  let found = [];
  let open = true;

  const choices = nodes.map((one) =>
    h(
      "button",
      { type: "button", onclick: () => choose(one), style: { "padding-left": `${12 + one.depth * 14}px` } },
      h("b", null, one.name),
      one.label && h("span", { class: "label" }, one.label),
      h("span", { class: "muted kind" }, one.kind),
    ),
  );
  fill(picker, h("ul", null, choices.map((choice) => h("li", null, choice))));

  function choose(one) {
    node = one;
    [newest, found] = [0, []];
    const here = `#/streams/${params.id}/messages?node=${encodeURIComponent(one.path)}`;
    window.history.replaceState(null, "", here);
    draw();
    again?.();
    running.look();
  }

  function draw() {
    choices.forEach((choice, index) => choice.setAttribute("aria-current", String(nodes[index] === node)));
    say(title, node.label ? `${node.name} ${node.label}` : node.name);
    say(about, node.detail);
    const seen = found.filter((one) => one.failed || !only.checked).slice(-MOST);
    const known = new Map([...samples.children].map((item) => [item.dataset.number, item]));
    fill(samples, seen.toReversed().map((one) => known.get(String(one.number)) ?? drawnSample(one, node)));
    say(note, told(seen, only.checked, open, node));
    running.show(node, open);
  }

  async function look() {
    if (hold.getAttribute("aria-pressed") === "true") return;
    const asked = node;
    ({ open } = await api.post(`streams/${params.id}/tap`, { query: { seconds: OPEN } }));
    const got = await api.get(`streams/${params.id}/tap`, { node: asked.path, after: newest });
    // Meanwhile another one may have been chosen.
    if (asked !== node) return;
    if (got.samples.length) newest = got.samples.at(-1).number;
    found = [...found, ...got.samples].slice(-MOST * 2);
    draw();
  }

  hold.addEventListener("click", () => {
    const held = hold.getAttribute("aria-pressed") !== "true";
    hold.setAttribute("aria-pressed", String(held));
    say(hold, held ? "Resume" : "Pause");
  });
  only.addEventListener("change", draw);
  draw();
  const again = await poll(look, INTERVAL, onLeave);
  await poll(running.look, RESULT_INTERVAL, onLeave);
}

function flat(nodes, depth = 0) {
  const found = nodes.flatMap((node) => [{ ...node, depth }, ...node.branches.flatMap((branch) => flat(branch.nodes, depth + 1))]);
  // A window's buffer and what the driver writes stand in two stages.
  return found.filter((node, index) => found.findIndex((one) => one.path === node.path) === index);
}

function told(seen, failed, open, node) {
  if (!open) return "The stream does not run: nothing passes.";
  if (seen.length) return `${number(seen.length, "sample")}, the newest first. Secrets of the config are left out.`;
  if (node.kind === "buffer") return "Messages wait here for their window: choose the nodes before and behind it.";
  if (failed) return "Nothing has failed here since you began to look.";
  if (node.pre_aggregates) return "";
  return "Waiting for messages.";
}

function drawnSample(sample, node) {
  const sides = [];
  if (sample.before) sides.push(side(node.kind === "output" ? "Given to it" : "Before", sample.before, sample.before_messages));
  if (sample.after) sides.push(side(node.kind === "input" ? "Read by it" : "After", sample.after, sample.after_messages));
  return h(
    "li",
    { class: sample.failed ? "card sample has-failed" : "card sample", "data-number": sample.number },
    h("header", null, h("time", { datetime: sample.at }, clock(Date.parse(sample.at))), sample.failed && h("span", { class: "state bad" }, "failed")),
    h("div", { class: "sides" }, sides),
  );
}

function side(name, batches, count) {
  const shown = batches.reduce((sum, batch) => sum + batch.length, 0);
  const many = count > 1 || batches.length > 1;
  const words = batches.length > 1 ? `${number(count, "message")} in ${number(batches.length, "batch", "batches")}` : number(count, "message");
  return h(
    "div",
    { class: "side" },
    h("h3", null, name, many && h("span", { class: "muted" }, words)),
    count === 0 ? h("p", { class: "muted" }, "Nothing: it was left out.") : batches.flat().map(messageCard),
    count > shown && h("p", { class: "muted" }, `… and ${number(count - shown, "more", "more")}`),
  );
}
