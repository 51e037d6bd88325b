/** The findings about a config: marks in its editor, and a list that leads to their places. */

import { h, fill } from "./dom.js";
import { visible } from "./outside_text.js";

const PLACED = /^\((\d+),(\d+)\) ([^]*)$/;
const NAMED = /^(?:unrecognised )?(?:function|method) '([^']+)'/;

/**
 * A finding, as `POST lint` answers it.
 * @typedef {{file: string, line: number, column: number, code: string, message: string,
 *   suggestion: string, chilled: boolean}} Finding
 */

/** Read the findings that a refused deploy answers with. @param {string[]} texts @returns {Finding[]} */
export function findingsOf(texts) {
  return texts.map((text) => {
    const [, line = "0", column = "0", message = text] = PLACED.exec(text) ?? [];
    const found = { file: "", code: "", suggestion: "", chilled: false, message };
    return { ...found, line: Number(line), column: Number(column) };
  });
}

/** The list of findings, beside the editor of the text that they are about. */
export class Findings {
  /** @param {import("./text_editor.js").TextEditor} editor @param {string} id of the element */
  constructor(editor, id) {
    this.editor = editor;
    this.title = h("h2", null, "Findings");
    this.state = h("span", { class: "muted", role: "status" });
    this.list = h("ol", { class: "findings" });
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": `${id}-title`, id },
      h("header", null, this.title, this.state),
      this.list,
    );
    this.title.id = `${id}-title`;
  }

  /** Show that they are being looked for. */
  wait() {
    this.state.textContent = "Looking…";
  }

  /** Show why they could not be looked for. @param {string} text */
  fail(text) {
    this.state.textContent = text;
  }

  /** Show findings. @param {Finding[]} findings @param {string} [none] what is said without any */
  show(findings, none = "None: it can be deployed.") {
    const many = findings.length === 1 ? "1 finding" : `${findings.length} findings`;
    this.state.textContent = findings.length ? many : none;
    this.state.className = findings.length ? "bad" : "good";
    fill(
      this.list,
      findings.map((one) => this.#item(one)),
    );
    const own = findings.filter((one) => one.line && !one.file);
    this.editor.mark(
      own.map(({ line, column, message, suggestion, chilled }) => ({
        line,
        column: this.#meant(line, column, message),
        message: suggestion ? `${message}; ${suggestion}` : message,
        kind: chilled ? "warn" : "bad",
      })),
    );
  }

  /** Where the name stands that a finding about a mapping is of: it is placed where reading stopped. */
  #meant(line, column, message) {
    const name = NAMED.exec(message)?.[1];
    const text = this.editor.text.split("\n")[line - 1] ?? "";
    const at = name ? text.lastIndexOf(name, column - 1) : -1;
    return at < 0 ? column : at + 1;
  }

  #item({ file, line, column, code, message, suggestion, chilled }) {
    const place = file ? `${file} ${line}:${column}` : `${line}:${column}`;
    const jump = () => this.editor.goTo(line, column);
    const at =
      line && !file
        ? h(
            "button",
            { type: "button", class: "quiet finding-place", onclick: jump },
            `Line ${place}`,
          )
        : h("span", { class: "finding-place" }, line ? place : "Whole config");
    return h(
      "li",
      { class: chilled ? "warn-item" : "bad-item" },
      at,
      h(
        "span",
        { class: "finding-text" },
        visible(message),
        suggestion && h("span", { class: "muted" }, " — ", visible(suggestion)),
      ),
      code && h("a", { class: "finding-code mono", href: `#/docs/lint-codes/${code}` }, code),
    );
  }
}
