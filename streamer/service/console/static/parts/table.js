/** A table whose rows are kept from one look to the next: sorted by its heads, and filtered. */

import { h, fill } from "./dom.js";

/**
 * A column. `fill` puts a row's value into its cell, each time anew; `value` is what is sorted by.
 * @typedef {object} Column
 * @property {string} name
 * @property {(row: any) => (string | number | null)} [value]
 * @property {(cell: HTMLElement, row: any) => void} fill
 * @property {string} [style] a class of the cells
 * @property {boolean} [down] whether the largest is first when it is sorted by this
 * @property {boolean} [first] whether the table is sorted by this at first; else by the first column
 */

/**
 * Return a table.
 * @param {string} said what it is, for screen readers
 * @param {Column[]} columns the first one names the row
 * @param {(row: any) => string} key tells rows apart
 * @returns {{element: HTMLElement, show: (rows: any[]) => void}} `show` takes the rows to be seen
 */
export function table(said, columns, key) {
  const body = h("tbody");
  const heads = columns.map((column) => head(column));
  const element = h(
    "div",
    { class: "table-room", role: "region", "aria-label": said, tabindex: "0" },
    h("table", null, h("caption", { class: "unseen" }, said), h("thead", null, h("tr", null, heads)), body),
  );
  /** @type {Map<string, {row: HTMLElement, cells: HTMLElement[]}>} */
  const known = new Map();
  let by = columns.find((one) => one.first) ?? columns[0];
  let sign = by.down ? -1 : 1;
  let rows = [];

  function head(column) {
    if (!column.value) return h("th", { scope: "col", class: column.style }, column.name);
    const button = h("button", { type: "button", class: "sort", onclick: () => sort(column) }, column.name);
    return h("th", { scope: "col", class: column.style }, button);
  }

  function sort(column) {
    sign = by === column ? -sign : column.down ? -1 : 1;
    by = column;
    show(rows);
  }

  function compare(one, other) {
    const [a, b] = [by.value(one), by.value(other)];
    // What is not known is last, whichever way.
    if (a === null || b === null) return (a === null) - (b === null);
    if (a < b) return -sign;
    if (a > b) return sign;
    return key(one) < key(other) ? -1 : 1;
  }

  function line(row) {
    const name = key(row);
    let found = known.get(name);
    if (!found) {
      const cells = columns.map((column, index) =>
        h(index ? "td" : "th", { scope: index ? null : "row", class: column.style, "data-head": column.name }),
      );
      found = { row: h("tr", null, cells), cells };
      known.set(name, found);
    }
    columns.forEach((column, index) => column.fill(found.cells[index], row));
    return found.row;
  }

  function show(given) {
    rows = given;
    heads.forEach((cell, index) => {
      const order = columns[index] === by ? (sign > 0 ? "ascending" : "descending") : null;
      if (order) cell.setAttribute("aria-sort", order);
      else cell.removeAttribute("aria-sort");
    });
    const lines = [...rows].sort(compare).map(line);
    const names = new Set(rows.map(key));
    for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    // Moving a row would take the focus from what is in it.
    const same = lines.length === body.children.length && lines.every((one, i) => one === body.children[i]);
    if (!same) {
      const focused = document.activeElement;
      fill(body, lines);
      if (focused instanceof HTMLElement && body.contains(focused)) focused.focus();
    }
  }

  return { element, show };
}
