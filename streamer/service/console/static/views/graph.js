/** A stream's graph: its stages and nodes in the order of a message's way, with live figures. */

import { markNode } from "../parts/condition.js";
import { h, fill, say } from "../parts/dom.js";
import { History } from "../parts/history.js";
import { poll } from "../parts/poll.js";
import { lasting, rate, whole } from "../parts/words.js";
import { tabs } from "../routes.js";

const INTERVAL = 2_000;
const ASIDE = "messages that the windows drop";

/**
 * Draw the graph, and keep its figures new.
 * @param {HTMLElement} root
 * @param {string} id the stream
 * @param {import("../api.js").Api} api
 * @param {(stop: () => void) => void} onLeave
 */
export async function graph(root, id, api, onLeave) {
  const stages = h("ol", { class: "stages" });
  const about = "Per node: messages/s in and out, p99 latency, failures since the start.";
  const card = h(
    "section",
    { class: "card", "aria-labelledby": "graph-title" },
    h("header", null, h("h2", { id: "graph-title" }, "Pipeline"), h("p", { class: "muted" }, about)),
    h("div", { class: "card-body" }, stages),
  );
  const history = new History();
  let nodes = new Map();
  let revision = null;

  async function look() {
    const counted = await api.get(`streams/${id}/components`);
    if (counted.revision !== revision) {
      const found = await api.get(`streams/${id}/graph`);
      nodes = new Map();
      fill(stages, found.stages.map((stage) => drawnStage(stage, id, nodes)));
      revision = found.revision;
    }
    const at = performance.now();
    markNode(nodes, counted.condition);
    for (const one of counted.components) update(one, nodes.get(one.path) ?? [], history, at);
  }

  root.append(card);
  await poll(look, INTERVAL, onLeave);
}

function drawnStage(stage, id, nodes) {
  const colour = { "stage 1": "accent", "stage 2": "violet", driver: "good" }[stage.name] ?? "accent";
  return h(
    "li",
    { class: `stage ${colour}` },
    h("h3", null, stage.name, h("span", { class: "muted" }, stage.where)),
    list(stage.nodes, id, nodes),
    stage.leaves && h("p", { class: "leaves muted mono" }, stage.leaves),
  );
}

function list(given, id, nodes) {
  const items = given.flatMap((node, index) => {
    const first = node.aside && !given[index - 1]?.aside;
    return [first && h("li", { class: "aside-title warn" }, ASIDE), drawnNode(node, id, nodes)];
  });
  return h("ol", { class: "nodes" }, items);
}

function drawnNode(node, id, nodes) {
  const figures = h("span", { class: "figures number" });
  const failed = h("span", { class: "failed number", hidden: true });
  const rejected = h("span", { class: "rejected number", hidden: true });
  const inside = [
    h("span", { class: "node-head" }, h("b", null, node.name), node.label && h("span", { class: "label" }, node.label), h("span", { class: "muted kind" }, node.aside && node.kind === "output" ? "late output" : node.kind)),
    node.detail && h("code", { class: "muted" }, node.detail),
    h("span", { class: "node-figures" }, figures, failed, rejected),
  ];
  const tapped = node.path && tabs.some((tab) => tab.name === "messages");
  const href = `#/streams/${id}/messages?node=${encodeURIComponent(node.path)}`;
  const box = tapped
    ? h("a", { class: "node-box", href, title: "See messages" }, inside)
    : h("div", { class: "node-box" }, inside);
  nodes.set(node.path, [...(nodes.get(node.path) ?? []), { box, figures, failed, rejected }]);
  const branches = node.branches.map((branch) =>
    h("li", null, branch.title && h("p", { class: "mono warn branch-title" }, branch.title), list(branch.nodes, id, nodes)),
  );
  return h("li", { class: node.aside ? "node aside" : "node" }, box, branches.length ? h("ul", { class: "branches" }, branches) : null);
}

function update(one, drawn, history, at) {
  const words = [];
  for (const [name, word] of [["received", "in"], ["sent", "out"]]) {
    if (one[name] === undefined) continue;
    history.add(`${one.path} ${name}`, one[name], at);
    words.push(`${rate(history.rate(`${one.path} ${name}`))} ${word}`);
  }
  if (one.latency_ms !== null) words.push(`p99 ${lasting(one.latency_ms / 1000)}`);
  for (const { box, figures, failed, rejected } of drawn) {
    say(figures, words.join(" · "));
    for (const [element, count, word] of [
      [failed, one.error ?? 0, "failed"],
      [rejected, one.rejected ?? 0, "rejected"],
    ]) {
      say(element, count ? `${whole(count)} ${word}` : "");
      element.hidden = !count;
    }
    box.classList.toggle("has-failed", Boolean(one.error));
  }
}
