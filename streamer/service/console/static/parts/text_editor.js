/** A field for texts with line numbers, colours and marks; typing and undoing are the browser's. */

import { h, fill } from "./dom.js";
import { pieces } from "./languages.js";
import { slyLines, visible } from "./outside_text.js";

const COLOURED = 150_000; // More text than this is not coloured: it would slow typing down.
const STEP = "  ";
const WHOLE = 1_000; // Of a text with more lines, those are drawn that are in sight, and some around.
const AROUND = 60;
const MANY = 200; // Lines that the browser takes long to insert, or to delete, so that it can undo it.
const TOLD = 5; // Lines that are named in words.

/** Whether the last thing that was pressed is Tab: then a field has got the focus by it. */
let byTab = false;
document.addEventListener(
  "keydown",
  ({ key }) => (byTab = key === "Tab" || (key === "Shift" && byTab)),
  true,
);
document.addEventListener("pointerdown", () => (byTab = false), true);

/**
 * A mark at a place of the text.
 * @typedef {object} Mark
 * @property {number} line from 1
 * @property {number} column from 1, in characters; 0 for the whole line
 * @property {number} [length] in characters; a word when left out
 * @property {"bad" | "warn"} kind
 * @property {string} message
 */

/** The field. Its `element` goes into the page. */
export class TextEditor {
  /**
   * @param {{label: string, text?: string, language?: RegExp | Function, readOnly?: boolean,
   *   changed?: () => void, describedBy?: string, rows?: number}} options
   *   `language` as `pieces` takes it: the names of its groups are those of colours
   */
  constructor({ label, text = "", language, readOnly = false, changed, describedBy, rows = 20 }) {
    this.language = language;
    this.changed = changed ?? (() => {});
    /** @type {Mark[]} */
    this.marks = [];
    this.numbers = h("pre", { class: "text-numbers", "aria-hidden": "true" });
    this.shown = h("pre", { class: "text-shown", "aria-hidden": "true" });
    this.area = h("textarea", {
      class: "text-area",
      "aria-label": label,
      "aria-describedby": describedBy,
      readonly: readOnly,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      autocorrect: "off",
      wrap: "off",
    });
    this.field = h("div", { class: "text-field" }, this.shown, this.area);
    this.sly = h("p", { class: "sly-note warn", role: "status", hidden: true });
    this.element = h(
      "div",
      { class: "text-editor", style: { "--rows": rows } },
      this.numbers,
      this.field,
      this.sly,
    );
    this.area.value = text;
    let leaving = false;
    this.area.addEventListener("input", () => {
      this.marks = [];
      this.paint();
      this.changed();
    });
    this.area.addEventListener("paste", (event) => {
      const pasted = event.clipboardData?.getData("text/plain") ?? "";
      if (readOnly || !hasMany(pasted)) return;
      event.preventDefault();
      this.replace(this.area.selectionStart, this.area.selectionEnd, pasted.replace(/\r\n?/g, "\n"));
    });
    this.area.addEventListener("scroll", () => this.follow());
    // Who comes by Tab goes on by Tab, until something else is pressed.
    this.area.addEventListener("focus", () => (leaving = byTab));
    this.area.addEventListener("pointerdown", () => (leaving = false));
    this.area.addEventListener("keydown", (event) => {
      if (!event.defaultPrevented && !readOnly) leaving = this.#pressed(event, leaving);
    });
    this.paint();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.marks = [];
    this.paint();
  }

  /** Put a text in the place of another, so that it can be undone unless it has many lines. */
  replace(from, to, text) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    // The only way that keeps the browser's undo.
    const done =
      !hasMany(text) &&
      (text
        ? document.execCommand("insertText", false, text)
        : from === to || document.execCommand("delete"));
    if (done) return;
    this.area.setRangeText(text, from, to, "end");
    this.area.dispatchEvent(new Event("input"));
  }

  /** Mark places. @param {Mark[]} marks */
  mark(marks) {
    this.marks = marks;
    this.paint();
  }

  /** Put the cursor to a place. @param {number} line @param {number} column both from 1 */
  goTo(line, column) {
    const at = this.#offset(line, column);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    this.area.scrollTop = Math.max((line - 4) * height, 0);
  }

  /** Where the cursor is, in pixels of `field`. @returns {{left: number, top: number, height: number}} */
  caret(offset = this.area.selectionStart) {
    const before = this.text.slice(0, offset).split("\n");
    const style = getComputedStyle(this.area);
    const height = parseFloat(style.lineHeight);
    this.ruler ??= widthOf(style);
    return {
      left:
        parseFloat(style.paddingLeft) + before.at(-1).length * this.ruler - this.area.scrollLeft,
      top: parseFloat(style.paddingTop) + (before.length - 1) * height - this.area.scrollTop,
      height,
    };
  }

  follow() {
    if (this.lines.length > WHOLE) this.#draw();
    this.shown.scrollTop = this.numbers.scrollTop = this.area.scrollTop;
    this.shown.scrollLeft = this.area.scrollLeft;
  }

  /** Draw what lies below the text: colours, marks, and line numbers. */
  paint() {
    this.lines = this.text.split("\n");
    this.starts = [0];
    for (const line of this.lines) this.starts.push(this.starts.at(-1) + line.length + 1);
    this.spans = this.marks.map((mark) => ({ ...this.#span(mark), kind: mark.kind }));
    const sly = slyLines(this.lines);
    this.worst = new Map([...sly].map(([line, messages]) => [line, { kind: "warn", messages }]));
    for (const { line, kind, message } of this.marks) {
      const there = this.worst.get(line);
      const messages = there ? `${there.messages}\n${message}` : message;
      this.worst.set(line, { kind: there?.kind === "bad" ? "bad" : kind, messages });
    }
    this.sly.hidden = sly.size === 0;
    fill(this.sly, sly.size > 0 && slyText(sly));
    this.drawn = null;
    // Before anything is measured: a field of another width is laid out anew, with all its lines.
    const digits = String(this.lines.length).length;
    this.numbers.style.setProperty("min-width", `calc(${digits}ch + 24px)`);
    this.#draw();
    this.follow();
  }

  /** Draw the lines in sight, and some around, unless they are drawn. */
  #draw() {
    const count = this.lines.length;
    const height = parseFloat(getComputedStyle(this.area).lineHeight) || 20;
    const top = Math.floor(this.area.scrollTop / height);
    const bottom = Math.ceil((this.area.scrollTop + (this.area.clientHeight || 800)) / height);
    const all = count <= WHOLE;
    if (this.drawn && (all || (this.drawn.first <= Math.max(top - 5, 0) && this.drawn.last >= Math.min(bottom + 5, count)))) return;
    const first = all ? 0 : Math.min(Math.max(top - AROUND, 0), count - 1);
    const last = all ? count : Math.min(bottom + AROUND, count);
    this.drawn = { first, last };
    const from = this.starts[first];
    const to = last === count ? this.text.length : this.starts[last];
    const spans = this.spans
      .filter((one) => one.to > from && one.from <= to)
      .map((one) => ({ ...one, from: one.from - from, to: one.to - from }));
    // What is above keeps its room.
    const room = () => first > 0 && h("div", { style: { height: `${first * height}px` } });
    fill(this.shown, room(), painted(this.text.slice(from, to), this.language, spans), "\n");
    const numbers = [];
    let plain = "";
    for (let number = first + 1; number <= last; number++) {
      const mark = this.worst.get(number);
      if (!mark) {
        plain += `${number}\n`;
        continue;
      }
      numbers.push(
        plain,
        h("span", { class: `text-mark ${mark.kind}`, title: mark.messages }, number),
        "\n",
      );
      plain = "";
    }
    fill(this.numbers, room(), numbers, plain);
  }

  #span({ line, column, length }) {
    const text = this.lines[line - 1] ?? "";
    const begin = this.#offset(line, 1);
    if (!column)
      return { from: begin + text.length - text.trimStart().length, to: begin + text.length };
    const from = this.#offset(line, column);
    const rest = text.slice(from - begin);
    const size = length
      ? [...rest].slice(0, length).join("").length
      : /^\s*[\w.\-$@]*|^./.exec(rest)[0].length;
    return { from, to: from + Math.max(size, 1) };
  }

  /** The offset of a place whose column counts characters, of which some take two in a text. */
  #offset(line, column) {
    const before = this.starts[Math.min(line - 1, this.lines.length)];
    const text = this.lines[line - 1] ?? "";
    const into = [...text.slice(0, 2 * column)].slice(0, Math.max(column - 1, 0)).join("").length;
    return Math.min(before + into, this.text.length);
  }

  #pressed(event, leaving) {
    const { key, shiftKey, ctrlKey, altKey, metaKey } = event;
    const held = ctrlKey || altKey || metaKey;
    if (key === "Tab" && !leaving && !held) {
      event.preventDefault();
      this.#indent(shiftKey);
    } else if (key === "Enter" && !held && !shiftKey) {
      event.preventDefault();
      this.#newLine();
    }
    if (key === "Shift") return leaving;
    return key === "Escape";
  }

  #indent(back) {
    const { selectionStart: start, selectionEnd: end } = this.area;
    const selected = this.text.slice(start, end);
    if (!back && !selected.includes("\n")) return this.replace(start, end, STEP);
    const from = this.text.lastIndexOf("\n", start - 1) + 1;
    const block = this.text.slice(from, end);
    const moved = back ? block.replace(/^ {1,2}/gm, "") : block.replace(/^(?=.)/gm, STEP);
    if (moved === block) return;
    this.replace(from, end, moved);
    if (selected) this.area.setSelectionRange(from, from + moved.length);
    else {
      const at = Math.max(from, start - (block.length - moved.length));
      this.area.setSelectionRange(at, at);
    }
  }

  #newLine() {
    const { selectionStart: start, selectionEnd: end } = this.area;
    const line = this.text.slice(this.text.lastIndexOf("\n", start - 1) + 1, start);
    const indent = /^ */.exec(line)[0];
    const deeper = /(:|[|>][-+]?)\s*$/.test(line) && line.trim() !== "" ? STEP : "";
    const item = /^ *- /.test(line) ? STEP : "";
    this.replace(start, end, `\n${indent}${item}${deeper}`);
  }
}

function hasMany(text) {
  return text.split("\n", MANY + 1).length > MANY;
}

function slyText(sly) {
  const lines = [...sly].slice(0, TOLD).map(([line, names]) => `line ${line} (${names})`);
  const more = sly.size > TOLD ? ` and ${sly.size - TOLD} more` : "";
  return `Characters that hide or reorder text: ${lines.join(", ")}${more}.`;
}

function widthOf(style) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `${style.fontSize} ${style.fontFamily}`;
  return context.measureText("0".repeat(100)).width / 100;
}

/** The text in pieces with their colours, marked where spans say so. */
function painted(text, language, spans) {
  const nodes = [];
  let at = 0;
  const cuts = [...new Set(spans.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b);
  for (const [part, colour] of coloured(text, language)) {
    const end = at + part.length;
    const edges = [at, ...cuts.filter((cut) => cut > at && cut < end), end];
    for (let index = 0; index + 1 < edges.length; index++) {
      const [from, to] = [edges[index], edges[index + 1]];
      const mark = spans.find((one) => one.from < to && one.to > from);
      const names = [colour && `c-${colour}`, mark && `wrong-place ${mark.kind}`].filter(Boolean);
      const piece = text.slice(from, to);
      const seen = visible(piece, true);
      nodes.push(names.length ? h("span", { class: names.join(" ") }, seen) : seen);
    }
    at = end;
  }
  const last = spans.find((one) => one.to > text.length);
  if (last) nodes.push(h("span", { class: `wrong-place ${last.kind}` }, " "));
  return nodes;
}

function* coloured(text, language) {
  if (language && text.length <= COLOURED) yield* pieces(text, language);
  else if (text) yield [text, ""];
}
