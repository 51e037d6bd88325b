/** A stream's graph: its stages and nodes in the order of a message's way, with live figures. */

import { markNode } from "../parts/condition.js";
import { h, fill, say } from "../parts/dom.js";
import { configLink } from "../parts/figure_links.js";
import { drawLoad } from "../parts/load.js";
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
  const about =
    "Per node: messages/s in and out, the 99th percentile of its latency over the last 10 minutes (p99), failures since the start, and how busy it was in the last minute.";
  const card = h(
    "section",
    { class: "card", "aria-labelledby": "graph-title" },
    h("header", null, h("h2", { id: "graph-title" }, "Pipeline"), h("p", { class: "muted" }, about)),
    h("div", { class: "card-body" }, stages),
  );
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
    markNode(nodes, counted.condition);
    for (const one of counted.components) update(one, nodes.get(one.path) ?? []);
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
  const load = h("span", { class: "load", hidden: true });
  const inside = [
    h("span", { class: "node-head" }, h("b", null, node.name), node.label && h("span", { class: "label" }, node.label), h("span", { class: "muted kind" }, node.aside && node.kind === "output" ? "late output" : node.kind)),
    node.detail && h("code", { class: "muted" }, node.detail),
    h("span", { class: "node-figures" }, figures, failed, rejected),
    load,
  ];
  const tapped = node.path && tabs.some((tab) => tab.name === "messages");
  const href = `#/streams/${id}/messages?node=${encodeURIComponent(node.path)}`;
  const box = tapped
    ? h("a", { class: "node-box", href, title: "See messages" }, inside)
    : h("div", { class: "node-box" }, inside);
  nodes.set(node.path, [...(nodes.get(node.path) ?? []), { box, figures, failed, rejected, load }]);
  const branches = node.branches.map((branch) =>
    h("li", null, branch.title && h("p", { class: "mono warn branch-title" }, branch.title), list(branch.nodes, id, nodes)),
  );
  const name = node.label || node.name;
  const source = node.path && h("a", { class: "node-config", href: configLink(id, node.path), title: `${name}: show it in the config` }, "config");
  return h("li", { class: node.aside ? "node aside" : "node" }, h("div", { class: "node-place" }, box, source), branches.length ? h("ul", { class: "branches" }, branches) : null);
}

function update(one, drawn) {
  const flows = [["received", "in"], ["sent", "out"]]
    .filter(([name]) => one[name] !== undefined)
    .map(([name, word]) => `${rate(one[`${name}_rate`])} ${word}`);
  const latency = one.latency_ms !== null ? [`p99 ${lasting(one.latency_ms / 1000)}`] : [];
  // A buffer stands in both stages: messages come into the first, and leave the second.
  const split = one.kind === "buffer" && drawn.length === 2 && flows.length === 2;
  drawn.forEach(({ box, figures, failed, rejected, load }, at) => {
    const words = split ? (at ? [flows[1], ...latency] : [flows[0]]) : [...flows, ...latency];
    say(figures, words.join(" · "));
    for (const [element, count, word] of [
      [failed, one.error ?? 0, "failed"],
      [rejected, one.rejected ?? 0, "rejected"],
    ]) {
      say(element, count ? `${whole(count)} ${word}` : "");
      element.hidden = !count;
    }
    box.classList.toggle("has-failed", Boolean(one.error));
    drawLoad(box, load, split && !at ? null : one.load);
  });
}
