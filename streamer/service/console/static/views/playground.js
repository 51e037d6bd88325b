/** A mapping in Bloblang and a document, and what the one makes of the other, while one types. */

import { h, fill } from "../parts/dom.js";
import { BLOBLANG, JSON_TEXT } from "../parts/languages.js";
import { later } from "../parts/later.js";
import { visible } from "../parts/outside_text.js";
import { readShared, share } from "../parts/share_link.js";
import { TextEditor } from "../parts/text_editor.js";

const PAUSE = 250; // ms
const FIRST = {
  mapping: `root.id = this.id
root.name = this.name.uppercase()
root.total = this.items.map_each(i -> i.price * i.count).sum()
root.source = @topic
meta seen = "yes"
`,
  input: `{
  "id": 7,
  "name": "ada",
  "items": [
    {"price": 2.5, "count": 2},
    {"price": 1, "count": 3}
  ]
}
`,
  metadata: `{"topic": "orders"}
`,
};
/** What a window holds, and a mapping that makes one message of it. */
const WINDOW = {
  mapping: `# Each window, and each group, is one batch.
root = if batch_index() == 0 {
  {
    "user": this.user,
    "orders": batch_size(),
    "total": json("price").from_all().sum()
  }
} else { deleted() }
`,
  input: `{"user": "ada", "price": 5}
{"user": "bob", "price": 7}
{"user": "ada", "price": 2}
`,
  metadata: "{}\n",
  batch: true,
  groupBy: "this.user",
};
/** What was typed, until the page is loaded anew. */
const kept = { ...FIRST, raw: false, batch: false, groupBy: "" };

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api, onLeave }) {
  const shared = params.state && readShared(params.state);
  if (shared) Object.assign(kept, shared);
  const changed = (name, editor) => () => {
    kept[name] = editor().text;
    state.textContent = "Trying…";
    look();
  };
  const mapping = new TextEditor({
    label: "Mapping",
    text: kept.mapping,
    language: BLOBLANG,
    rows: 12,
    changed: changed("mapping", () => mapping),
  });
  const input = new TextEditor({
    label: "Input",
    text: kept.input,
    language: JSON_TEXT,
    rows: 12,
    changed: changed("input", () => input),
  });
  const metadata = new TextEditor({
    label: "Metadata",
    text: kept.metadata,
    language: JSON_TEXT,
    rows: 3,
    changed: changed("metadata", () => metadata),
  });
  const raw = h("input", { type: "checkbox", checked: kept.raw });
  const state = h("span", { class: "muted", role: "status" });
  const out = h("div", {
    class: "card-body stack",
    role: "group",
    "aria-label": "What comes out",
    tabindex: "0",
  });
  raw.addEventListener("change", () => {
    kept.raw = raw.checked;
    look();
  });
  const batch = h("input", { type: "checkbox", checked: kept.batch });
  const groupBy = h("input", {
    type: "text",
    class: "mono",
    value: kept.groupBy,
    placeholder: "this.user",
    spellcheck: "false",
    autocomplete: "off",
  });
  const groups = h("label", { class: "group-by", hidden: !kept.batch }, "Group by", groupBy);
  batch.addEventListener("change", () => {
    kept.batch = batch.checked;
    groups.hidden = !kept.batch;
    look();
  });
  groupBy.addEventListener("input", () => {
    kept.groupBy = groupBy.value;
    look();
  });
  const begin = (given) => {
    Object.assign(kept, { raw: false, batch: false, groupBy: "" }, given);
    for (const [name, one] of Object.entries({ mapping, input, metadata })) one.text = kept[name];
    raw.checked = kept.raw;
    batch.checked = kept.batch;
    groupBy.value = kept.groupBy;
    groups.hidden = !kept.batch;
    look(true);
  };
  root.append(
    h("div", { class: "head" }, h("h1", null, "Bloblang playground"), reference()),
    h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", onclick: () => begin(WINDOW) }, "Try a window's mapping"),
      h("button", { type: "button", onclick: () => begin(FIRST) }, "Try one document"),
      h("button", { type: "button", onclick: () => share(kept) }, "Copy link"),
    ),
    h(
      "div",
      { class: "playground" },
      card("Mapping", null, mapping.element),
      card(
        "Input",
        h(
          "span",
          { class: "input-options" },
          h("label", { class: "choice" }, raw, h("span", null, "Raw text")),
          h("label", { class: "choice" }, batch, h("span", null, "One batch, a message a line")),
          groups,
        ),
        input.element,
      ),
      card("Result", state, out),
      card("Metadata", null, metadata.element),
    ),
  );

  async function attempt(signal) {
    const known = objectIn(metadata);
    if (known === undefined) {
      state.textContent = "The metadata is not an object of JSON.";
      state.className = "bad";
      return;
    }
    const body = {
      ...{ mapping: mapping.text, input: input.text, raw: raw.checked, metadata: known },
      ...{ batch: batch.checked, group_by: batch.checked ? groupBy.value : "" },
    };
    let answer;
    try {
      answer = await api.post("bloblang", { body, signal });
    } catch (error) {
      if (signal.aborted) return;
      state.textContent = "";
      fill(out, h("p", { class: "wrong" }, error.message));
      return;
    }
    tell(answer);
  }

  function tell({ problem, results = [], cut }) {
    const failed = problem ?? results.find((one) => one.problem)?.problem;
    mapping.mark(
      failed?.line
        ? [
            {
              line: failed.line,
              column: failed.column,
              length: failed.length,
              kind: "bad",
              message: failed.text,
            },
          ]
        : [],
    );
    state.textContent = problem
      ? "The mapping cannot be read"
      : failed
        ? "The mapping failed"
        : "Done";
    state.className = failed ? "bad" : "good";
    if (problem) return fill(out, trouble(problem, mapping));
    fill(
      out,
      results.map((one, index) => [
        one.batch && one.batch !== results[index - 1]?.batch && h("h3", null, `Batch ${one.batch}`),
        result(one, mapping),
      ]),
      cut && h("p", { class: "warn" }, "There is more than is shown here."),
    );
  }

  const look = later(attempt, PAUSE, onLeave);
  look(true);
}

/** The object in an editor; undefined when it is none. */
function objectIn(editor) {
  try {
    const found = JSON.parse(editor.text.trim() || "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function result({ output, deleted, metadata, problem }, editor) {
  if (problem) return trouble(problem, editor);
  if (deleted) return h("p", { class: "muted" }, "The mapping deletes the message.");
  return [
    h("pre", { class: "result-text" }, visible(output)),
    metadata &&
      h("div", null, h("h3", null, "Metadata"), h("pre", { class: "result-text" }, visible(metadata))),
  ];
}

function trouble({ text, line, column }, editor) {
  const go =
    line > 0 &&
    h(
      "button",
      { type: "button", onclick: () => editor.goTo(line, column || 1) },
      `Go to line ${line}`,
    );
  return h("div", { class: "stack" }, h("p", { class: "wrong" }, visible(text)), go);
}

function card(title, beside, content) {
  const id = `playground-${title.toLowerCase()}`;
  return h(
    "section",
    { class: "card", "aria-labelledby": id },
    h("header", null, h("h2", { id }, title), beside),
    content,
  );
}

function reference() {
  const pages = {
    "bloblang-functions": "Functions",
    "bloblang-methods": "Methods",
    bloblang: "The language",
  };
  return h(
    "nav",
    { class: "buttons", "aria-label": "Reference" },
    Object.entries(pages).map(([page, text]) =>
      h("a", { class: "button", href: `#/docs/${page}` }, text),
    ),
  );
}
