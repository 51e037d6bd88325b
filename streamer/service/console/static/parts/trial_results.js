/** Results of trials, as `POST console/trial/…` answers them. */

import { h } from "./dom.js";
import { isolated, visible } from "./outside_text.js";

/**
 * What a trial has shown.
 * @typedef {{nodes: any[], text: string, good: boolean}} Shown
 */

/** @returns {Shown} */
export function testsView({ tests, lints, problem }, editor) {
  const failed = tests.filter((one) => !one.passed).length;
  const nodes = [
    lints.map(({ file, line, text }) =>
      h("p", { class: "wrong" }, place(file, line, editor), " ", visible(text)),
    ),
    tests.length > 0 && h("ol", { class: "trial-list" }, tests.map((one) => testItem(one, editor))),
  ];
  if (!tests.length && !lints.length && !problem)
    nodes.push(
      h(
        "p",
        { class: "muted" },
        "This config has no tests. ",
        h("a", { href: "#/docs/testing" }, "Write some"),
        " in its section ",
        h("code", null, "tests"),
        ".",
      ),
    );
  const good = !failed && !lints.length && !problem;
  const text = tests.length ? `${tests.length - failed} of ${tests.length} passed` : "No tests";
  return { nodes, text, good };
}

function testItem({ name, file, line, passed, error, failures }, editor) {
  const word = passed ? "passed" : error ? "not run" : "failed";
  return h(
    "li",
    { class: passed ? "good-item" : "bad-item" },
    h(
      "div",
      { class: "trial-head" },
      h("span", { class: `trial-word ${passed ? "good" : "bad"}` }, word),
      isolated(name),
      place(file, line, editor),
    ),
    failures.map((failure) =>
      h(
        "pre",
        { class: "result-text trial-difference" },
        failure.map(({ text, tone }) =>
          h("span", { class: `tone-${tone}` }, visible(text), "\n"),
        ),
      ),
    ),
  );
}

function place(file, line, editor) {
  if (file) return h("span", { class: "muted mono" }, `${file}:${line}`);
  if (!line) return null;
  const jump = () => editor.goTo(line, 1);
  return h("button", { type: "button", class: "quiet finding-place", onclick: jump }, `Line ${line}`);
}

/** @returns {Shown} */
export function timelineView({ messages, windows, svg, problem }) {
  const dropped = messages.filter((one) => one.dropped).length;
  const nodes = [];
  if (svg)
    nodes.push(
      h(
        "div",
        { class: "trial-drawing", role: "region", tabindex: "0", "aria-label": "Timeline" },
        h("img", {
          src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`,
          alt: "Windows above, messages below, time from left to right; the tables below say the same.",
        }),
      ),
    );
  if (windows.length)
    nodes.push(
      scrolled(
        "Windows",
        ["Window", "Key", "Start", "End", "Closes", "Messages"],
        windows.map((one) => [
          one.number,
          one.key === null ? "–" : isolated(one.key),
          one.start ?? "–",
          one.end ?? "–",
          one.retracted ? `result taken back: ${one.retracted}` : one.closed ?? "open",
          `${one.messages}: ${one.numbers}`,
        ]),
      ),
      h(
        "p",
        { class: "muted" },
        "Windows that are open after the last message close as the input ends, as these messages do.",
      ),
    );
  if (messages.length)
    nodes.push(
      scrolled(
        "Messages",
        ["#", "Message", "Event time", "Arrives", "Windows"],
        messages.map((one) => [
          one.number,
          h("span", { class: "mono" }, visible(one.content)),
          one.time ?? "–",
          one.arrived,
          one.dropped
            ? h("span", { class: "bad" }, `dropped: ${one.why}`)
            : one.windows.length
              ? one.windows.join(", ")
              : one.why || "–",
        ]),
      ),
    );
  if (!messages.length && !problem)
    nodes.push(h("p", { class: "muted" }, "Paste messages above: a timeline shows where they fall."));
  const lost = dropped ? `, ${counted(dropped, "message")} dropped` : "";
  const text = `${counted(windows.length, "window")}${lost}`;
  return { nodes, text: problem ? "Not run" : text, good: !problem };
}

function scrolled(label, heads, rows) {
  return h(
    "div",
    { class: "trial-table", role: "region", tabindex: "0", "aria-label": label },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, heads.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map((one) => h("td", null, one))))),
    ),
  );
}

/** @returns {Shown} */
export function stagesView({ stages, problem }) {
  const nodes = stages.map((stage, index) => stageView(stage, stages[index - 1]));
  const failed = stages.some((stage) =>
    stage.batches.some((batch) => batch.some((one) => one.failed)),
  );
  const text = problem ? "Stopped" : failed ? "Some messages failed" : "Done";
  return { nodes, text, good: !problem && !failed };
}

function stageView(stage, before) {
  const counts = before
    ? `${before.messages} in, ${stage.messages} out`
    : counted(stage.messages, "message");
  const late = stage.dropped_count ? `, ${stage.dropped_count} dropped` : "";
  const passes = before && stage.path === "output";
  return h(
    "section",
    { class: "trial-stage", "aria-label": `${stage.path}: ${stage.component}` },
    h(
      "h3",
      null,
      h("code", null, visible(stage.path)),
      ` ${stage.component}`,
      stage.label && h("span", { class: "muted" }, " ", isolated(stage.label)),
    ),
    h("p", { class: "muted" }, `${counts}${late}${stage.note ? ` (${stage.note})` : ""}`),
    h(
      "div",
      { class: before && !passes ? "trial-sides" : null },
      before && !passes && side("Before", before),
      side(before && !passes ? "After" : "", stage),
    ),
    stage.dropped.length > 0 && [
      h("h4", null, "Dropped"),
      stage.dropped.map((one) => messageView(one)),
    ],
    stage.logged.map(({ level, text }) =>
      h("p", { class: level === "ERROR" ? "wrong" : "muted" }, `log ${level}: `, visible(text)),
    ),
  );
}

function side(title, { batches, messages, batch_count: batchCount }) {
  const shown = batches.reduce((sum, batch) => sum + batch.length, 0);
  const many = batches.some((batch) => batch.length > 1);
  return h(
    "div",
    { class: "trial-side" },
    title && h("h4", null, title),
    batches.map((batch, index) => [
      many && h("p", { class: "muted" }, `Batch ${index + 1} of ${batchCount}`),
      batch.map((one) => messageView(one)),
    ]),
    messages === 0 && h("p", { class: "muted" }, "No messages."),
    messages > shown && h("p", { class: "muted" }, `${messages - shown} more`),
  );
}

function messageView({ content, bytes, metadata, failed }) {
  const names = Object.keys(metadata);
  return h(
    "div",
    { class: failed ? "trial-message bad-item" : "trial-message" },
    h("pre", { class: "result-text" }, visible(content)),
    bytes > content.length && content.length >= 4000 && h("p", { class: "muted" }, `${bytes} bytes in all`),
    failed && h("p", { class: "wrong" }, "failed: ", visible(failed)),
    names.length > 0 &&
      h(
        "details",
        null,
        h("summary", { class: "muted" }, counted(names.length, "metadata field")),
        h(
          "dl",
          { class: "trial-metadata" },
          names.map((name) => [h("dt", null, visible(name)), h("dd", null, visible(metadata[name]))]),
        ),
      ),
  );
}

/** @returns {Shown} */
export function checksView({ checks, problem }) {
  const failed = checks.filter((one) => one.ok === false).length;
  const nodes = [
    h(
      "ol",
      { class: "trial-list" },
      checks.map(({ name, ok, detail }) =>
        h(
          "li",
          { class: ok === false ? "bad-item" : "good-item" },
          h(
            "div",
            { class: "trial-head" },
            h(
              "span",
              { class: `trial-word ${ok === false ? "bad" : "good"}` },
              ok === false ? "failed" : ok ? "ok" : "not checked",
            ),
            h("code", null, visible(name)),
          ),
          detail && h("p", { class: ok === false ? "wrong" : "muted" }, visible(detail)),
        ),
      ),
    ),
  ];
  const text = failed ? `${failed} of ${checks.length} failed` : "Everything connects";
  return { nodes, text: problem ? "Stopped" : text, good: !failed && !problem };
}

function counted(number, what) {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
