/** What came out of a stream's windows, by key and time, page by page. */

import { ApiError } from "../api.js";
import { h, fill } from "../parts/dom.js";
import { growing } from "../parts/growing.js";
import { beginning, saveButton } from "../parts/outside_text.js";

const LIMITS = [50, 200, 1000];
const CUT = 2000; // Characters of a value that are shown.

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api }) {
  const key = h("input", {
    type: "text",
    class: "mono",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "all keys",
  });
  const from = h("input", {
    type: "text",
    class: "mono",
    autocomplete: "off",
    placeholder: "2026-11-21T00:00:00Z",
  });
  const to = h("input", {
    type: "text",
    class: "mono",
    autocomplete: "off",
    placeholder: "2026-11-22T00:00:00Z",
  });
  const limit = h(
    "select",
    null,
    LIMITS.map((one) => h("option", { value: one }, one)),
  );
  const all = h("input", { type: "checkbox" });
  const out = h("section", { class: "card", "aria-label": "Results" });
  const said = h("p", { class: "muted", role: "status" });
  const go = h("button", { type: "submit", class: "main" }, "Find");
  const form = h(
    "form",
    { class: "card card-body query" },
    h("label", { class: "field" }, "Key", key),
    h("label", { class: "field" }, "Starts at or after", from),
    h("label", { class: "field" }, "Ends at or before", to),
    h("label", { class: "field" }, "A page", limit),
    h("label", { class: "choice" }, all, h("span", null, "All revisions")),
    h("div", { class: "buttons" }, go),
  );
  root.append(form, said, out);

  async function find(after) {
    go.disabled = true;
    said.textContent = "Looking…";
    const query = {
      key: key.value || null,
      from: from.value || null,
      to: to.value || null,
      limit: limit.value,
      revisions: all.checked ? "all" : null,
      after,
    };
    const path = `streams/${params.id}/results`;
    const began = performance.now();
    try {
      const page = await api.get(path, { ...query, cut: CUT });
      const took = Math.round(performance.now() - began);
      said.textContent = `${amount(page.results.length, page.next)} in ${took} ms`;
      page.results.length
        ? draw(page, (index) => whole(api, path, query, page.results[index], index))
        : fill(
            out,
            h(
              "p",
              { class: "card-body muted" },
              "No results: no window of that key and time has been kept.",
            ),
          );
    } catch (error) {
      said.textContent = "";
      const none = error instanceof ApiError && error.status === 404;
      fill(
        out,
        none ? keepsNone() : h("p", { class: "card-body wrong", role: "alert" }, error.message),
      );
    } finally {
      go.disabled = false;
    }
  }

  function draw(page, wholeOf) {
    const rows = h("tbody");
    const end = growing(rows, page.results, (one, index) => row(one, () => wholeOf(index)));
    const heads = ["Key", "Window", "Revision", "Result"];
    const more =
      page.next && h("button", { type: "button", onclick: () => find(page.next) }, "Next page");
    fill(
      out,
      h(
        "div",
        { class: "table-room", tabindex: "0", role: "region", "aria-label": "Table of results" },
        h(
          "table",
          { class: "list results" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              heads.map((one) => h("th", { scope: "col" }, one)),
            ),
          ),
          rows,
        ),
      ),
      end,
      more && h("div", { class: "card-body buttons" }, more),
    );
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    find(null);
  });
  await find(null);
}

function amount(count, next) {
  const text = count === 1 ? "1 result" : `${count} results`;
  return next ? `${text}, and more,` : text;
}

/** The text of a result as it is, in the place where the page has shown its beginning. */
async function whole(api, path, query, shown, index) {
  // Read here, numbers would change.
  const text = await api.ask("GET", path, { query: { ...query, only: index }, plain: true });
  const found = JSON.parse(text).results[0];
  const same = ["start", "end", "revision", "emit"].every((name) => found?.[name] === shown[name]);
  if (!same) throw new Error("There are other results now: find them again.");
  return text;
}

function row({ key, start, end, revision, emit, content, metadata, error, cut = {} }, wholeOf) {
  return h(
    "tr",
    null,
    h(
      "td",
      { class: "mono key" },
      key === null || key === undefined ? "—" : beginning(text(key), cut.key),
    ),
    h("td", { class: "mono window" }, h("span", null, start), h("span", { class: "muted" }, end)),
    h("td", null, revision, emit && h("span", { class: "muted" }, ` ${emit}`)),
    h(
      "td",
      null,
      h("pre", { class: "result-text" }, beginning(text(content), cut.content)),
      metadata &&
        Object.keys(metadata).length > 0 &&
        h(
          "details",
          null,
          h("summary", null, "Metadata"),
          h("pre", { class: "result-text" }, beginning(text(metadata), cut.metadata)),
        ),
      error && h("p", { class: "wrong" }, beginning(error, cut.error)),
      Object.keys(cut).length > 0 && saveButton("Save the whole", "result.json", wholeOf),
    ),
  );
}

function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function keepsNone() {
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
