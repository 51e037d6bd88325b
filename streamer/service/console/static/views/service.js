/** The service itself: what it runs on, what its streams cost, its checkpoints, its log, its settings. */

import { h, fill, say } from "../parts/dom.js";
import { factList, unknown } from "../parts/facts.js";
import { logView } from "../parts/log_view.js";
import { poll } from "../parts/poll.js";
import { saveFile } from "../parts/save_file.js";
import { table } from "../parts/table.js";
import { toast } from "../parts/toast.js";
import { lasting, number, size, whole } from "../parts/words.js";

const INTERVAL = 5_000;
const NO_SPARK = "Not known: Spark has not started.";
const NOT_TOLD = "Not known: this system does not tell.";

/**
 * @param {HTMLElement} root
 * @param {{api: import("../api.js").Api, onLeave: (stop: () => void) => void}} context
 */
export async function show(root, { api, onLeave }) {
  const summary = h("p", { class: "muted" });
  const facts = factList("Facts of the service");
  const refused = h("section", { class: "notice bad", "aria-label": "Refused files", hidden: true });
  const streams = table("Cost of each stream", costColumns(), (row) => row.id);
  const executors = table("List of executors", executorColumns(), (row) => row.name);
  const checkpoints = table("List of checkpoints", checkpointColumns(), (row) => row.id);
  const place = h("span", { class: "muted mono" });
  const settings = h("pre", { class: "settings", tabindex: "0", "aria-label": "Settings" });
  const executorCard = card("Executors", null, executors.element);
  const log = h("section", { class: "page", "aria-label": "Log of the service" }, h("h2", null, "Log of the service"));
  root.append(
    h("div", { class: "head" }, h("h1", null, "Service"), summary, links(api)),
    refused,
    h("section", { class: "card card-body", "aria-label": "Facts" }, facts.element),
    card("Streams by cost", h("span", { class: "muted" }, "time in micro-batches, of the last ten minutes"), streams.element),
    executorCard,
    card("Checkpoints", place, checkpoints.element),
    card("Settings", h("span", { class: "muted" }, "without secrets"), settings),
    log,
  );

  async function look() {
    const now = await api.get("console/service");
    say(summary, `streamer ${now.version} on ${now.host.name}, up ${lasting(now.uptime)}`);
    facts.show(described(now));
    streams.show(now.streams);
    executorCard.hidden = now.executors === null;
    executors.show(now.executors ?? []);
    say(place, now.checkpoints.place);
    checkpoints.show(now.checkpoints.streams);
    say(settings, JSON.stringify({ options: now.options, ...now.settings }, null, 2));
    refused.hidden = !now.refused_files.length;
    const told = JSON.stringify(now.refused_files);
    if (refused.dataset.said !== told) fill(refused, refusals(now.refused_files));
    refused.dataset.said = told;
  }

  await poll(look, INTERVAL, onLeave);
  await logView(log, { path: "console/service/logs", name: "service-log", api, onLeave });
}

function card(title, more, body) {
  return h("section", { class: "card", "aria-label": title }, h("header", null, h("h2", null, title), more), body);
}

function described({ python, java, spark, master, host, heap_used: heap, heap_max: most, ...now }) {
  const bytes = (value) => (value === null ? unknown(NOT_TOLD) : size(value));
  const memory = host.memory_total === null ? unknown(NOT_TOLD) : `${bytes(host.memory_available)} of ${size(host.memory_total)} available`;
  const disk = host.disk_free === null ? unknown("Not known: the directory cannot be read.") : `${size(host.disk_free)} of ${size(host.disk_total)} free`;
  return [
    ["Host", `${host.name} (process ${host.pid})`],
    ["Started", now.started.replace(/\.\d+/, "")],
    ["Python", python],
    ["Java", java ?? unknown(NO_SPARK)],
    ["Spark", spark],
    ["Spark master", master ?? unknown(NO_SPARK)],
    ["Cores", host.cores ?? unknown(NOT_TOLD)],
    ["Load", host.load === null ? unknown(NOT_TOLD) : `${host.load.join(" · ")} (1, 5, 15 min)`],
    ["Memory of the machine", memory],
    ["Limit of the container", host.memory_limit === null ? "none" : size(host.memory_limit)],
    ["Memory of this process", bytes(host.process_memory)],
    ["Java heap", heap === null ? unknown(NO_SPARK) : `${size(heap)} of ${size(most)}`],
    ["Disk of the checkpoints", disk],
  ];
}

function refusals(files) {
  return [
    h("p", null, `${number(files.length, "file")} refused: `, h("a", { href: "#/?state=refused" }, "show in the list of streams")),
    h("ul", null, files.map((one) => h("li", null, h("b", null, one.id), `: ${one.text}`))),
  ];
}

function linked(cell, row) {
  if (!cell.firstChild) cell.append(h("a", { href: `#/streams/${row.id}` }, row.id));
}

function costColumns() {
  const none = "Not known: the stream has done no micro-batch since its start.";
  return [
    { name: "Stream", value: (row) => row.id, fill: linked, style: "stream-name" },
    { name: "State", value: (row) => row.condition, fill: (cell, row) => say(cell, row.condition.replaceAll("_", " ")) },
    {
      name: "Busy",
      value: (row) => row.batch_share,
      fill: (cell, row) => fill(cell, row.batch_share === null ? unknown(none) : `${Math.round(row.batch_share * 100)} %`),
      style: "number",
      down: true,
      first: true,
    },
    {
      name: "In micro-batches",
      value: (row) => row.batch_seconds,
      fill: (cell, row) => fill(cell, row.batch_seconds === null ? unknown(none) : lasting(row.batch_seconds)),
      style: "number",
      down: true,
    },
    { name: "Micro-batches", value: (row) => row.batches, fill: (cell, row) => say(cell, whole(row.batches)), style: "number", down: true },
  ];
}

function checkpointColumns() {
  const remote = "Not known: it is on another file system, or not there yet.";
  const never = "Nothing has been committed since the start.";
  return [
    { name: "Stream", value: (row) => row.id, fill: linked, style: "stream-name" },
    {
      name: "Size",
      value: (row) => row.bytes,
      fill: (cell, row) => fill(cell, row.bytes === null ? unknown(remote) : size(row.bytes)),
      style: "number",
      down: true,
    },
    {
      name: "Last commit",
      value: (row) => row.age,
      fill: (cell, row) => fill(cell, row.age === null ? unknown(never) : h("time", { datetime: row.last_commit, title: row.last_commit }, `${lasting(row.age)} ago`)),
      style: "number",
    },
    { name: "Directory", value: (row) => row.directory, fill: (cell, row) => say(cell, row.directory), style: "mono path" },
  ];
}

function executorColumns() {
  const plain = (name, field, write = (value) => whole(value)) => ({
    name,
    value: (row) => row[field],
    fill: (cell, row) => say(cell, write(row[field])),
    style: "number",
    down: true,
  });
  return [
    { name: "Executor", value: (row) => row.name, fill: (cell, row) => say(cell, row.name) },
    { name: "Host", value: (row) => row.host, fill: (cell, row) => say(cell, row.excluded ? `${row.host} (gets no tasks)` : row.host) },
    plain("Cores", "cores"),
    plain("Active tasks", "active_tasks"),
    plain("Failed tasks", "failed_tasks"),
    plain("Time in tasks", "task_seconds", lasting),
    plain("Storage memory", "memory_used", size),
  ];
}

/** The API's description and the metrics: a link where nobody has to say who one is, else a file. */
function links(api) {
  const named = [
    ["OpenAPI", "openapi.json", "openapi.json"],
    ["Metrics", "metrics", "metrics.txt"],
  ];
  const items = named.map(([label, path, file]) =>
    api.signedIn
      ? h("button", { type: "button", onclick: () => save(api, path, file) }, label)
      : h("a", { class: "button", href: api.address(path, {}).href, target: "_blank", rel: "noopener" }, label),
  );
  return h("div", { class: "buttons" }, items, h("a", { class: "button", href: "#/docs/metrics" }, "About the metrics"));
}

async function save(api, path, file) {
  try {
    saveFile(file, (await api.ask("GET", path, { file: true })).blob);
  } catch (error) {
    toast(`Not downloaded: ${error.message}`, "bad");
  }
}
