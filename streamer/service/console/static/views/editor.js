/** The editor of a config: of a stream that there is, or of a new one. */

import { ApiError } from "../api.js";
import { complete } from "../parts/completion.js";
import { configSchema } from "../parts/config_schema.js";
import { deployDialog } from "../parts/deploying.js";
import { diffTable } from "../parts/diff.js";
import { h, fill } from "../parts/dom.js";
import { editorPage } from "../parts/editor_page.js";
import { Findings, findingsOf } from "../parts/findings.js";
import { judgementView } from "../parts/judgement.js";
import { YAML } from "../parts/languages.js";
import { later } from "../parts/later.js";
import { TextEditor } from "../parts/text_editor.js";
import { toast } from "../parts/toast.js";

const PAUSE = 500; // ms without typing, after which findings are looked for
const NEW = "";
const ID = /^[A-Za-z0-9_-]{1,128}$/;
const FIRST = `input:
  generate:
    interval: 1s
    mapping: |
      root = {"id": counter(), "at": now()}

pipeline:
  processors:
    - mapping: |
        root = this

output:
  drop: {}
`;
/** What was typed and not deployed, by stream, until the tab of the browser is closed. */
const drafts = new Map();

/**
 * @param {HTMLElement} root
 * @param {object} context as all views have it; without `params.id` a new stream is made
 */
export async function show(root, { params, api, navigate, onLeave }) {
  const id = params.id ?? NEW;
  const running = id === NEW ? null : await api.get(`streams/${id}/config`);
  const view = new Editor(root, { id, api, navigate, onLeave, running });
  view.look(true);
}

class Editor {
  constructor(root, { id, api, navigate, onLeave, running }) {
    Object.assign(this, { id, api, navigate, running });
    this.readOnly = running !== null && !running.of_api;
    this.findings = [];
    this.editor = new TextEditor({
      label: id ? `Config of ${id}` : "Config of the new stream",
      text: drafts.get(id) ?? running?.text ?? FIRST,
      language: YAML,
      readOnly: this.readOnly,
      changed: () => this.changed(),
      describedBy: "editor-keys",
      rows: 26,
    });
    this.list = new Findings(this.editor, "findings");
    this.look = later((signal) => this.lint(signal), PAUSE, onLeave);
    if (!this.readOnly) complete(this.editor, () => configSchema(api));
    this.page = editorPage(root, {
      id,
      running,
      editor: this.editor.element,
      findings: this.list.element,
      deploy: () => this.ask(),
      discard: () => this.discard(),
    });
    this.tell();
    const unload = (event) => this.differs && event.preventDefault();
    window.addEventListener("beforeunload", unload);
    onLeave(() => window.removeEventListener("beforeunload", unload));
  }

  get differs() {
    return this.editor.text !== (this.running?.text ?? FIRST);
  }

  changed() {
    if (this.differs) drafts.set(this.id, this.editor.text);
    else drafts.delete(this.id);
    this.tell();
    this.list.wait();
    this.look();
  }

  tell() {
    this.page.discard.disabled = !this.differs;
    this.page.deploy.disabled = this.id !== NEW && !this.differs;
    if (!this.differs)
      fill(this.page.change, h("p", { class: "muted" }, "Nothing is changed yet."));
  }

  async lint(signal) {
    try {
      this.findings = await this.found(signal);
    } catch (error) {
      if (!signal.aborted) this.list.fail(error.message);
      return;
    }
    this.list.show(this.findings, this.readOnly ? "None." : undefined);
    if (this.id !== NEW && this.differs) await this.judge(signal);
  }

  /** The findings about the text; about that of a file, which may do more, those that it was read with. */
  async found(signal) {
    if (this.readOnly) {
      const path = `streams/${this.id}/lint`;
      return findingsOf((await this.api.ask("GET", path, { signal })).lint_errors);
    }
    const more = { yaml: this.editor.text, query: { stream: this.id || null }, signal };
    return (await this.api.post("lint", more)).lints;
  }

  /** Say what the change would come to, if it can be deployed. */
  async judge(signal) {
    if (this.findings.some((one) => !one.chilled)) {
      fill(
        this.page.change,
        h("p", { class: "muted" }, "The findings come first."),
        diffTable(this.running.text, this.editor.text, "Changed lines"),
      );
      return;
    }
    try {
      const judgement = await this.judgement(signal);
      fill(
        this.page.change,
        judgementView(judgement),
        diffTable(this.running.text, this.editor.text, "Changed lines"),
      );
    } catch (error) {
      if (!signal.aborted) fill(this.page.change, h("p", { class: "wrong" }, error.message));
    }
  }

  judgement(signal) {
    return this.api.post(`streams/${this.id}/judgement`, { yaml: this.editor.text, signal });
  }

  async ask() {
    fill(this.page.wrong);
    this.page.deploy.disabled = true;
    try {
      // What was typed a moment ago has not been looked at.
      await this.lint(new AbortController().signal);
      if (this.findings.some((one) => !one.chilled))
        throw new Error("The findings come first: it cannot run with them.");
      const answer = await (this.id === NEW ? this.create() : this.update());
      if (answer) await this.deployed(answer);
    } catch (error) {
      this.failed(error);
    } finally {
      this.tell();
    }
  }

  async create() {
    const name = this.page.name.value.trim();
    if (!ID.test(name)) {
      this.page.name.focus();
      throw new Error("Give the stream an id of letters, digits, _ and -, at most 128 of them.");
    }
    const send = (query, timeout) =>
      this.api.post(`streams/${name}`, { yaml: this.editor.text, query, timeout });
    const chilled = this.onlyChilled();
    const what = {
      title: `Create ${name}?`,
      yes: "Create and start",
      judgement: null,
      texts: null,
      chilled,
    };
    const answer = await deployDialog({ ...what, deploy: send });
    return answer && { ...answer, name };
  }

  async update() {
    const [judgement, now] = await Promise.all([
      this.judgement(),
      this.api.get(`streams/${this.id}/config`),
    ]);
    const by = now.author ? `by ${now.author} ` : "";
    const overtaken =
      now.revision !== this.running.revision &&
      h(
        "p",
        { class: "note warn" },
        `Revision ${now.revision} was deployed ${by}while you were editing. `,
        "What follows is compared with it.",
      );
    return deployDialog({
      title: `Deploy to ${this.id}?`,
      yes: "Deploy",
      judgement,
      texts: [now.text, this.editor.text, "Changed lines"],
      warning: overtaken,
      chilled: this.onlyChilled(),
      deploy: (query, timeout) =>
        this.api.put(`streams/${this.id}`, { yaml: this.editor.text, query, timeout }),
    });
  }

  onlyChilled() {
    return this.findings.length > 0 && this.findings.every((one) => one.chilled);
  }

  async deployed(answer) {
    drafts.delete(this.id);
    if (answer.name) {
      // What was typed is deployed: nothing holds one back.
      this.running = { text: this.editor.text };
      toast(`${answer.name} runs.`);
      this.navigate(`#/streams/${answer.name}`);
      return;
    }
    this.running = await this.api.get(`streams/${this.id}/config`);
    const { state, reason } = await this.api.get(`streams/${this.id}`);
    const is = `The stream is ${state}${reason ? `: ${reason}` : ""}.`;
    this.editor.text = this.running.text;
    this.page.title.textContent = `Revision ${this.running.revision}`;
    toast(
      `Revision ${answer.revision} of ${this.id} is deployed: ${answer.judgement.effect}. ${is}`,
    );
    this.look(true);
  }

  failed(error) {
    const texts = error instanceof ApiError ? error.findings : [];
    fill(
      this.page.wrong,
      h(
        "div",
        { class: "note bad-note" },
        h(
          "p",
          null,
          h(
            "b",
            null,
            texts.length ? "It was not deployed; what ran before runs." : "This did not work.",
          ),
          " ",
          texts.length ? "See the findings." : error.message,
        ),
      ),
    );
    if (texts.length) this.list.show(findingsOf(texts));
  }

  discard() {
    drafts.delete(this.id);
    this.editor.text = this.running.text;
    fill(this.page.wrong);
    this.changed();
    this.editor.area.focus();
  }
}
