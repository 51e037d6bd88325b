"use strict";
const start = JSON.parse(document.getElementById("start").textContent);
const $ = (id) => document.getElementById(id);

const BLOBLANG = new RegExp([
  '(?<c>#[^\\n]*)', '(?<s>"""[^]*?(?:"""|$)|"(?:[^"\\\\\\n]|\\\\.)*"?)',
  '(?<k>\\b(?:root|this|meta|let|map|import|from|if|else|match|true|false|null)\\b|[$@]\\w*|->|=>)',
  '(?<n>\\b\\d+(?:\\.\\d+)?\\b)', '(?<f>\\b\\w+(?=\\())'].join("|"), "g");
const JSON_TEXT = /(?<f>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?<s>"(?:[^"\\\n]|\\.)*"?)|(?<k>\b(?:true|false|null)\b)|(?<n>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)/g;
const COLOURED = 200000;  // More text than this is not coloured: it would slow typing down.

function span(text, name) {
  const node = document.createElement("span");
  node.className = name;
  node.textContent = text;
  return node;
}

// The pieces of a text, each with the name of its colour.
function* pieces(text, language) {
  let done = 0;
  if (language && text.length <= COLOURED) {
    for (const found of text.matchAll(language)) {
      if (found.index > done) yield [text.slice(done, found.index), ""];
      yield [found[0], Object.entries(found.groups).find(([, part]) => part !== undefined)[0]];
      done = found.index + found[0].length;
    }
  }
  if (done < text.length) yield [text.slice(done), ""];
}

// Fill `into` with coloured text; what lies between the offsets of `wrong` is underlined.
function paint(into, text, language, wrong) {
  const nodes = [];
  let at = 0;
  const put = (part, name) => { if (part) nodes.push(name ? span(part, name) : part); };
  for (const [part, name] of pieces(text, language)) {
    const end = at + part.length;
    if (wrong && wrong[0] < end && wrong[1] > at) {
      const from = Math.max(wrong[0] - at, 0), to = Math.min(wrong[1] - at, part.length);
      put(part.slice(0, from), name);
      put(part.slice(from, to), (name + " wrong-place").trim());
      put(part.slice(to), name);
    } else put(part, name);
    at = end;
  }
  if (wrong && wrong[0] >= text.length) nodes.push(span(" ", "wrong-place"));
  nodes.push("\n");
  into.replaceChildren(...nodes);
}

class Editor {
  constructor(id, text, language, changed) {
    this.language = language;
    this.wrong = null;
    this.shown = document.createElement("pre");
    this.shown.setAttribute("aria-hidden", "true");
    this.numbers = this.shown.cloneNode();
    this.numbers.className = "numbers";
    this.area = document.createElement("textarea");
    Object.assign(this.area, { value: text, spellcheck: false, autocapitalize: "off", wrap: "off" });
    this.area.setAttribute("aria-labelledby", id + "-name");
    $(id).append(this.numbers, this.shown, this.area);
    let leaving = false;
    this.area.addEventListener("input", () => { this.wrong = null; this.paint(); changed(); });
    this.area.addEventListener("scroll", () => this.follow());
    this.area.addEventListener("keydown", (event) => {
      if (event.key === "Tab" && !leaving && !event.shiftKey && !event.altKey && !event.ctrlKey) {
        event.preventDefault();
        // The only way that keeps the browser's undo.
        if (!document.execCommand("insertText", false, "  ")) {
          this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
          this.area.dispatchEvent(new Event("input"));
        }
      }
      if (event.key !== "Shift") leaving = event.key === "Escape";
    });
    this.paint();
  }

  get text() { return this.area.value; }

  follow() {
    this.shown.scrollTop = this.numbers.scrollTop = this.area.scrollTop;
    this.shown.scrollLeft = this.area.scrollLeft;
  }

  paint() {
    paint(this.shown, this.text, this.language, this.wrong);
    const lines = this.text.split("\n").length;
    const wrong = this.wrong ? this.text.slice(0, this.wrong[0]).split("\n").length : 0;
    const before = Array.from({ length: lines }, (_, i) => i + 1);
    if (wrong) {
      this.numbers.replaceChildren(
        before.slice(0, wrong - 1).map((n) => n + "\n").join(""), span(wrong + "\n", "wrong"),
        before.slice(wrong).join("\n") + "\n");
    } else this.numbers.textContent = before.join("\n") + "\n";
    this.follow();
  }

  // Underline a place: lines and columns count from 1, columns in characters; without a column, the
  // whole line.
  mark({ line, column, length }) {
    this.wrong = null;
    const lines = this.text.split("\n");
    if (line >= 1 && line <= lines.length) {
      const begin = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
      const text = lines[line - 1];
      // Characters that take two places in a JavaScript text are counted as one.
      const place = (count) => begin + Array.from(text).slice(0, count).join("").length;
      if (column) this.wrong = [place(column - 1), place(column - 1 + length)];
      else this.wrong = [begin + text.length - text.trimStart().length, begin + text.length];
    }
    this.paint();
  }

  go() {
    this.area.focus();
    if (this.wrong) this.area.setSelectionRange(this.wrong[0], this.wrong[0]);
  }
}

let number = 0, timer = 0, running = null;
const soon = () => { clearTimeout(timer); timer = setTimeout(run, 150); };
const mapping = new Editor("mapping", start.mapping, BLOBLANG, soon);
const input = new Editor("input", start.input, JSON_TEXT, soon);

function state(text, kind) {
  $("state").textContent = text;
  $("state").className = kind;
}

function problem(found) {
  $("problem").hidden = !found;
  $("problem").textContent = found ? found.text : "";
  mapping.mark(found || { line: 0 });
}

function block(text, name, language) {
  const pre = document.createElement("pre");
  pre.className = name;
  if (language) paint(pre, text, language);
  else pre.textContent = text;
  return pre;
}

function heading(text) {
  const node = document.createElement("h3");
  node.textContent = text;
  return node;
}

function show(results, cut) {
  const nodes = [];
  results.forEach((one, index) => {
    if (results.length > 1) nodes.push(heading(`Document ${index + 1}`));
    // A single failure stands under the mapping already.
    if (one.problem) {
      nodes.push(results.length > 1 ? block(one.problem.text, "failed") : block("failed", "aside"));
    }
    else if (one.deleted) nodes.push(block("deleted", "aside"));
    else nodes.push(block(one.output, "", /^\s*[[{]/.test(one.output) ? JSON_TEXT : null));
    if (one.metadata) nodes.push(heading("Metadata"), block(one.metadata, "", JSON_TEXT));
  });
  if (cut) nodes.push(block("There is more; only the beginning is shown.", "aside"));
  $("result").replaceChildren(...nodes);
  $("result").className = "";
}

function answered(answer) {
  if (answer.problem) {
    problem(answer.problem);
    $("result").className = "old";
    state("The mapping does not run", "bad");
    return;
  }
  const failed = answer.results.filter((one) => one.problem);
  problem(failed.length ? failed[0].problem : null);
  show(answer.results, answer.cut);
  if (failed.length) state(`${failed.length} of ${answer.results.length} failed`, "bad");
  else state("Done", "good");
}

async function run() {
  clearTimeout(timer);
  if (running) running.abort();
  running = new AbortController();
  const mine = ++number;
  const waiting = setTimeout(() => state("Running …", ""), 300);
  try {
    const response = await fetch("execute", {
      method: "POST", headers: { "Content-Type": "application/json" }, signal: running.signal,
      body: JSON.stringify({ mapping: mapping.text, input: input.text, raw: $("raw").checked }),
    });
    const answer = await response.json();
    if (mine !== number) return;
    if (!response.ok) state(answer.error, "bad");
    else answered(answer);
  } catch (error) {
    if (mine === number && error.name !== "AbortError") state("The server does not answer", "bad");
  } finally {
    clearTimeout(waiting);
    if (mine === number) document.body.dataset.answered = mine;
  }
}

$("raw").addEventListener("change", run);
$("problem").addEventListener("click", () => mapping.go());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  const target = { Digit1: input.area, Digit2: mapping.area, Digit3: $("result") }[event.code];
  if (event.altKey && !event.ctrlKey && target) { event.preventDefault(); target.focus(); }
});
mapping.area.focus();
run();
