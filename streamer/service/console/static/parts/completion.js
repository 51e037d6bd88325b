/** Proposals while one types: a list below the cursor, for arrows, Enter, Escape and the mouse. */

import { h, fill, say } from "./dom.js";
import { proposals } from "./schema.js";
import { cursorAt } from "./yaml_text.js";

const MOST = 80;
let lists = 0;

/**
 * Let an editor of configs propose what the schema has at the cursor. The list is what ARIA calls
 * a listbox, which the field owns: the cursor stays in the text while the list is gone through.
 * @param {import("./text_editor.js").TextEditor} editor
 * @param {() => object | null} schema of configs; null while it is not there
 */
export function complete(editor, schema) {
  const { area, field } = editor;
  const id = `proposals-${++lists}`;
  const list = h("ul", {
    id,
    role: "listbox",
    class: "proposals",
    "aria-label": "Proposals",
    hidden: true,
  });
  const told = h("span", { class: "unseen", role: "status" });
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-haspopup", "listbox");
  area.setAttribute("aria-controls", id);
  field.append(list, told);
  let open = null; // What is shown: the cursor, what is proposed, and which of it is chosen.

  function close() {
    open = null;
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
    say(told, "");
  }

  function look(asked) {
    const found = schema() && area.selectionStart === area.selectionEnd && matching(asked);
    if (!found) return close();
    open = { ...found, chosen: 0 };
    fill(
      list,
      found.all.map((one, index) => option(one, index)),
    );
    list.hidden = false;
    const { left, top, height } = editor.caret(found.cursor.from);
    const below = top + height;
    const room = field.clientHeight - below;
    const up = room < 160 && top > room;
    list.style.setProperty(
      "left",
      `${Math.max(0, Math.min(left, field.clientWidth - list.offsetWidth - 8))}px`,
    );
    list.style.setProperty("top", up ? "auto" : `${below}px`);
    list.style.setProperty("bottom", up ? `${field.clientHeight - top}px` : "auto");
    say(told, `${found.all.length} proposals`);
    choose(0);
  }

  function matching(asked) {
    const cursor = cursorAt(editor.text, area.selectionStart);
    if (!cursor) return null;
    const word = editor.text.slice(cursor.from, area.selectionStart).toLowerCase();
    if (!word && !asked) return null;
    const rank = ({ name }) => {
      const at = name.toLowerCase().indexOf(word);
      return at === 0 ? 0 : at > 0 ? 1 : 2;
    };
    const all = proposals(schema(), cursor)
      .filter((one) => rank(one) < 2)
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MOST);
    const whole = editor.text.slice(cursor.from, cursor.to);
    const typed = all.length === 1 && all[0].name === whole;
    return all.length && (asked || !typed) ? { cursor, all } : null;
  }

  function option({ name, note, about }, index) {
    return h(
      "li",
      { id: `${id}-${index}`, role: "option", "aria-selected": "false", onpointerdown: pick },
      h("span", { class: "proposal-name" }, name),
      h("span", { class: "proposal-note" }, note),
      h("span", { class: "proposal-about" }, about),
    );
    function pick(event) {
      event.preventDefault();
      take(index);
    }
  }

  function choose(index) {
    list.children[open.chosen]?.setAttribute("aria-selected", "false");
    open.chosen = (index + open.all.length) % open.all.length;
    const chosen = list.children[open.chosen];
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", chosen.id);
  }

  function take(index) {
    const { cursor, all } = open;
    close();
    editor.replace(cursor.from, cursor.to, written(all[index], cursor, editor.text));
    close();
    if (goesOn(all[index])) look(true);
  }

  area.addEventListener("input", () => look(false));
  area.addEventListener("blur", close);
  area.addEventListener("pointerdown", close);
  area.addEventListener("scroll", () => open && close());
  area.addEventListener(
    "keydown",
    (event) => {
      const { key } = event;
      if ((event.ctrlKey && key === " ") || (event.altKey && key === "ArrowDown")) {
        event.preventDefault();
        look(true);
        return;
      }
      if (!open || event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
      if (key in moves) choose(open.chosen + moves[key]);
      else if ((key === "Enter" || key === "Tab") && !event.shiftKey && !event.ctrlKey) take(open.chosen);
      else if (key === "Escape") close();
      else {
        if (key === "ArrowLeft" || key === "ArrowRight" || key === "Home" || key === "End") close();
        return;
      }
      event.preventDefault();
    },
    true,
  );
}

/** Whether what comes next can be proposed too. */
function goesOn({ kind, note }) {
  return kind === "object" || kind === "list" || /^(choice|boolean)/.test(note);
}

/** What is put in for a proposal: a key goes on with what its value begins with. */
function written({ name, kind }, { to, indent, flow }, text) {
  if (kind === "value" || /^\s*:/.test(text.slice(to))) return name;
  if (flow || kind === "field") return `${name}: `;
  const deeper = `\n${" ".repeat(indent + 2)}`;
  return kind === "list" ? `${name}:${deeper}- ` : `${name}:${deeper}`;
}
