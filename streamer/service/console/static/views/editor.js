/** The editor of a config: of a stream that there is, or of a new one. */

import { ApiError } from "../api.js";
import { complete } from "../parts/completion.js";
import { configSchema } from "../parts/config_schema.js";
import { confirm } from "../parts/dialog.js";
import { deployDialog } from "../parts/deploying.js";
import { diffTable } from "../parts/diff.js";
import { h, fill } from "../parts/dom.js";
import { changeDraft, dropDraft, readDraft } from "../parts/drafts.js";
import { editorPage } from "../parts/editor_page.js";
import { Findings, findingsOf } from "../parts/findings.js";
import { judgementView } from "../parts/judgement.js";
import { YAML } from "../parts/languages.js";
import { later } from "../parts/later.js";
import { newIdField } from "../parts/new_id.js";
import { TextEditor } from "../parts/text_editor.js";
import { toast } from "../parts/toast.js";
import { trialsCard } from "../parts/trials.js";

const PAUSE = 500; // ms without typing, after which findings are looked for
const NEW = "";
/**
 * @param {HTMLElement} root
 * @param {object} context as all views have it; without `params.id` a new stream is made
 */
export async function show(root, { params, api, navigate, onLeave }) {
  const id = params.id ?? NEW;
  const running = id === NEW ? null : await api.get(`streams/${id}/config`);
  const starters = id === NEW ? await api.get("console/starters") : [];
  const view = new Editor(root, { id, api, navigate, onLeave, running, starters });
  view.look(true);
  if (params.node && id !== NEW) await showNode(view.editor, id, params.node, api);
}

/** Put the cursor to the line of a component. */
async function showNode(editor, id, node, api) {
  const { lines } = await api.get(`streams/${id}/graph`);
  if (lines[node]) editor.goTo(lines[node], 1);
}

class Editor {
  constructor(root, { id, api, navigate, onLeave, running, starters }) {
    Object.assign(this, { id, api, navigate, running });
    /** What a new stream begins with, as long as nothing is typed. */
    this.first = starters[0]?.text ?? "";
    this.readOnly = running !== null && !running.of_api;
    this.findings = [];
    const draft = this.readOnly ? {} : readDraft(id);
    /** The revision that was changed; another one may have been deployed meanwhile. */
    this.began = draft.text === undefined ? running?.revision : draft.revision;
    this.editor = new TextEditor({
      label: id ? `Config of ${id}` : "Config of the new stream",
      text: draft.text ?? running?.text ?? this.first,
      language: YAML,
      readOnly: this.readOnly,
      changed: () => this.changed(),
      describedBy: "editor-keys",
      rows: 26,
    });
    this.list = new Findings(this.editor, "findings");
    this.look = later((signal) => this.lint(signal), PAUSE, onLeave);
    if (!this.readOnly) complete(this.editor, () => configSchema(api));
    if (id === NEW)
      this.name = newIdField({
        api,
        text: draft.name ?? "",
        changed: (name) => this.keep({ name: name || undefined }),
        onLeave,
      });
    const kept = {
      messages: draft.messages ?? "",
      keep: (messages) => this.keep({ messages: messages || undefined }),
    };
    this.page = editorPage(root, {
      id,
      running,
      editor: this.editor.element,
      findings: this.list.element,
      trials: trialsCard({ id, editor: this.editor, api, kept, onLeave }),
      before: this.name ? [this.name.element, this.starterField(starters)] : [],
      deploy: () => this.ask(),
      discard: () => this.discard(),
    });
    this.isKept = true;
    this.tell();
    if (this.overtaken) this.page.wrong.append(overtakenNote(this.began, running));
    root.addEventListener("keydown", (event) => this.pressed(event));
    const unload = (event) => this.differs && !this.isKept && event.preventDefault();
    window.addEventListener("beforeunload", unload);
    onLeave(() => window.removeEventListener("beforeunload", unload));
  }

  get differs() {
    return this.editor.text !== (this.running?.text ?? this.first);
  }

  /** Whether what runs is another revision than the one that the draft began with. */
  get overtaken() {
    return this.running !== null && this.differs && this.began !== this.running.revision;
  }

  /** The choice of a config to begin with; what was typed is not thrown away unasked. */
  starterField(starters) {
    const options = starters.map(({ name, title }) => h("option", { value: name }, title));
    const select = h("select", { onchange: () => this.begin(starters, select) }, options);
    const now = starters.find(({ text }) => text === this.editor.text);
    select.value = now?.name ?? starters[0]?.name;
    return h("label", { class: "field new-starter" }, "Begin with", select);
  }

  async begin(starters, select) {
    const chosen = starters.find(({ name }) => name === select.value);
    const typed = starters.every(({ text }) => text !== this.editor.text);
    const question = {
      title: "Replace the text?",
      text: "What you typed is lost.",
      yes: "Replace it",
      danger: true,
    };
    if (typed && !(await confirm(question))) return;
    this.first = chosen.text;
    this.editor.text = chosen.text;
    this.changed();
    // Also after a reload this is where the stream begins.
    this.keep({ text: chosen.text });
  }

  keep(changes) {
    this.isKept = changeDraft(this.id, changes);
  }

  changed() {
    if (this.differs) this.keep({ text: this.editor.text, revision: this.began });
    else {
      this.began = this.running?.revision;
      this.keep({ text: undefined, revision: undefined });
    }
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

  pressed(event) {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (!(ctrlKey || metaKey) || altKey || shiftKey) return;
    if (key.toLowerCase() === "s") {
      // The browser would save the page.
      event.preventDefault();
      if (!this.readOnly) toast("Nothing is deployed: this tab keeps the draft. Ctrl+Enter deploys it.");
    } else if (key === "Enter" && !this.readOnly && !event.defaultPrevented) {
      event.preventDefault();
      if (!this.page.deploy.disabled) this.ask();
    }
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
        h("p", { class: "muted" }, "Fix the errors first."),
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
    if (this.asking) return;
    this.asking = true;
    const focused = document.activeElement;
    fill(this.page.wrong);
    this.page.deploy.setAttribute("aria-busy", "true");
    try {
      // What was typed a moment ago has not been looked at.
      await this.lint(new AbortController().signal);
      if (this.findings.some((one) => !one.chilled))
        throw new Error("Fix the errors first: the config cannot run with them.");
      const answer = await (this.id === NEW ? this.create() : this.update());
      if (answer?.isCanary) {
        // What was typed stays a draft until it is promoted.
        toast(`The canary of ${this.id} begins.`);
        this.navigate(`#/streams/${this.id}/canary`);
      } else if (answer) await this.deployed(answer);
    } catch (error) {
      this.failed(error);
    } finally {
      this.asking = false;
      this.page.deploy.removeAttribute("aria-busy");
      this.tell();
      this.refocus(focused);
    }
  }

  /** Give the focus back where it was before a dialog, or near it: never to nothing. */
  refocus(element) {
    const now = document.activeElement;
    if (now && now !== document.body && !now.disabled) return;
    if (element?.isConnected && element !== document.body && !element.disabled) element.focus();
    else if (this.page.deploy.isConnected && !this.page.deploy.disabled) this.page.deploy.focus();
    else if (this.page.title.isConnected) this.page.title.focus();
  }

  async create() {
    const name = this.name.input.value.trim();
    const wrong = await this.name.check();
    if (wrong) {
      this.name.input.focus();
      throw new Error(wrong);
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
      now.revision !== this.began &&
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
      canary: async ({ on_reset, ...query }, timeout) => {
        const canary = { yaml: this.editor.text, query, timeout };
        await this.api.post(`streams/${this.id}/canary`, canary);
        return { isCanary: true };
      },
    });
  }

  onlyChilled() {
    return this.findings.length > 0 && this.findings.every((one) => one.chilled);
  }

  async deployed(answer) {
    const { messages } = readDraft(this.id);
    dropDraft(this.id);
    if (answer.name) {
      // What was typed is deployed: nothing holds one back.
      this.running = { text: this.editor.text };
      toast(`${answer.name} runs.`);
      this.navigate(`#/streams/${answer.name}`);
      return;
    }
    if (messages) this.keep({ messages });
    this.running = await this.api.get(`streams/${this.id}/config`);
    this.began = this.running.revision;
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
            texts.length ? "Not deployed; the stream runs as before." : "Not deployed.",
          ),
          " ",
          texts.length ? "See the findings." : error.message,
        ),
      ),
    );
    if (texts.length) this.list.show(findingsOf(texts));
  }

  discard() {
    this.editor.text = this.running.text;
    this.began = this.running.revision;
    fill(this.page.wrong);
    this.changed();
    this.editor.area.focus();
  }
}

function overtakenNote(began, { revision, author }) {
  const by = author ? ` by ${author}` : "";
  return h(
    "p",
    { class: "note warn" },
    `This draft began with revision ${began}. Revision ${revision} was deployed${by} since then.`,
  );
}
