/** What came out of a stream's windows: by key and time or in SQL, newest first, page by page. */

import { ApiError } from "../api.js";
import { keepInAddress } from "../parts/address.js";
import { curlCommand, queryCommand } from "../parts/commands.js";
import { copyingButton } from "../parts/copying.js";
import { h, fill, say } from "../parts/dom.js";
import { poll } from "../parts/poll.js";
import { resultQuery } from "../parts/result_query.js";
import { resultTable, showSqlRows } from "../parts/result_rows.js";
import { saveFile } from "../parts/save_file.js";
import { number } from "../parts/words.js";

const CUT = 2000; // Characters of a value that are shown.
const INTERVAL = 2_000;
const DOWNLOAD_TIMEOUT = 180_000; // ms: a file may take the service a minute, and its way some more.
const FORMATS = [["csv", "CSV"], ["jsonl", "JSON lines"], ["parquet", "Parquet"]];

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api, onLeave }) {
  const path = `streams/${params.id}/results`;
  const form = resultQuery(params, () => find(null));
  const said = h("p", { class: "muted", role: "status" });
  const out = h("section", { class: "card", "aria-label": "Results" });
  const follow = h("input", { type: "checkbox" });
  const refresh = h("button", { type: "button", onclick: () => find(page.after) }, "Refresh");
  const { element: saving, busy } = downloadTools(() => download());
  const tools = h(
    "div",
    { class: "tools results-tools" },
    said,
    refresh,
    h("label", { class: "check" }, follow, "Follow"),
    saving,
    copyingButton("Copy as curl", () => curlCommand(api, path, page.query)),
    copyingButton("Copy as CLI", () => queryCommand(api, params.id, page.query)),
  );
  root.append(form.element, tools, out);
  const rows = resultTable();
  /** What is shown: the query, and the place that it goes on behind. */
  let page = { query: form.query(), after: null, text: "" };
  let turn = 0;

  async function find(after, quiet = false) {
    const mine = ++turn;
    const query = after ? page.query : form.query();
    if (!quiet) {
      form.go.disabled = true;
      say(said, "Searching…");
      keepInAddress(form.state());
    }
    const began = performance.now();
    try {
      const asked = query.sql ? query : { ...query, after, cut: CUT };
      const text = await api.ask("GET", path, { query: asked, plain: true });
      if (mine !== turn) return;
      const took = Math.round(performance.now() - began);
      draw(JSON.parse(text), query, after, text, quiet ? null : took);
    } catch (error) {
      if (mine !== turn || (quiet && !(error instanceof ApiError))) return;
      say(said, "");
      failed(error);
    } finally {
      form.go.disabled = false;
    }
  }

  function draw(found, query, after, text, took) {
    const same = text === page.text && after === page.after;
    page = { query, after, text };
    const count = query.sql ? found.rows.length : found.results.length;
    const more = query.sql ? found.cut : found.next;
    const shown = `${number(count, query.sql ? "row" : "result")}${more ? ", and more," : ""}`;
    say(said, took === null ? shown.replace(/,$/, "") : `${shown} in ${took} ms`);
    // What has not changed keeps the place that one reads at.
    if (took === null && same) return;
    if (!count) return nothing(query);
    if (query.sql) return showSqlRows(out, found);
    const next = found.next && h("button", { type: "button", onclick: () => find(found.next) }, "Next page");
    const first = after && h("button", { type: "button", onclick: () => find(null) }, "First page");
    const foot = (next || first) && h("div", { class: "card-body buttons" }, first, next);
    rows.show(out, found.results, (index) => whole(found.results[index], index), foot);
  }

  function nothing(query) {
    const timed = query.from || query.to;
    const anyTime = h(
      "button",
      {
        type: "button",
        onclick: () => {
          form.anyTime();
          find(null);
        },
      },
      "Search any time",
    );
    const text = query.sql ? "The answer has no rows." : "No results: no window of that key and time has been kept.";
    fill(out, h("div", { class: "card-body" }, h("p", { class: "muted" }, text), timed && anyTime));
  }

  function failed(error) {
    page = { ...page, text: "" };
    const none = error instanceof ApiError && error.status === 404;
    tools.hidden = none;
    const alert = () => h("pre", { class: "card-body wrong query-error", role: "alert" }, error.message);
    fill(out, none ? keepsNone(error) : alert());
  }

  /** The text of a result as it is, in the place where the page has shown its beginning. */
  async function whole(shown, index) {
    const query = { ...page.query, after: page.after, only: index };
    // Read here, numbers would change.
    const text = await api.ask("GET", path, { query, plain: true });
    const found = JSON.parse(text).results[0];
    const same = ["start", "end", "revision", "emit"].every((name) => found?.[name] === shown[name]);
    if (!same) throw new Error("There are other results now: find them again.");
    return text;
  }

  async function download() {
    const { limit, ...query } = page.query;
    const asked = { ...query, format: saving.querySelector("select").value };
    busy(true);
    try {
      const more = { query: asked, file: true, timeout: DOWNLOAD_TIMEOUT };
      const { blob, headers } = await api.ask("GET", `${path}/download`, more);
      const name = /filename="([\w.-]+)"/.exec(headers.get("Content-Disposition") ?? "")?.[1];
      saveFile(name ?? `${params.id}-results.${asked.format}`, blob);
      const cut = headers.get("X-Results-Cut") === "true" ? "; there are more than a file takes" : "";
      say(said, `Downloaded ${number(Number(headers.get("X-Results")), "result")}${cut}.`);
    } catch (error) {
      say(said, `Not downloaded: ${error.message}`);
    } finally {
      busy(false);
    }
  }

  await find(null);
  follow.addEventListener("change", () => follow.checked && find(null));
  // Pages that others follow stand still: only the first one shows what comes.
  await poll(async () => follow.checked && !page.after && find(null, true), INTERVAL, onLeave);
}

function downloadTools(start) {
  const format = h("select", { "aria-label": "Format of the file" }, FORMATS.map(([name, text]) => h("option", { value: name }, text)));
  const button = h("button", { type: "button", onclick: start }, "Download");
  const element = h("span", { class: "download" }, format, button);
  return { element, busy: (is) => (button.disabled = is) };
}

function keepsNone(error) {
  if (!error.message.includes("keeps no results")) return h("p", { class: "card-body wrong", role: "alert" }, error.message);
  return h(
    "div",
    { class: "card-body" },
    h("h2", null, "This stream keeps no results"),
    h(
      "p",
      null,
      "Give its window buffer the field ",
      h("code", null, "retention"),
      ", such as ",
      h("code", null, "retention: 7d"),
      ": then what comes out of its windows is kept that long. ",
      h("a", { href: "#/docs/results" }, "How that works"),
    ),
  );
}
