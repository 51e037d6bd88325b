/** Results of a search of the documentation. */

import { h } from "./dom.js";

/** As many as the service returns at most. */
const MOST = 30;

/**
 * Return the list of results.
 * @param {{page: string, title: string, section: string, heading: string, slug: string,
 *   excerpt: {text: string, is_match: boolean}[]}[]} hits
 * @param {string} text what was looked for
 * @returns {Node[]}
 */
export function searchResults(hits, text) {
  const pages = hits.length === 1 ? "1 page" : `${hits.length} pages`;
  const found = hits.length === MOST ? `The best ${pages}; add a word for fewer` : pages;
  const none = h(
    "p",
    null,
    "No page has all of these words. Leave one out, or use the word of the error message or field.",
  );
  return [
    h("h1", null, `Results for “${text}”`),
    h("p", { class: "muted", role: "status" }, hits.length ? found : "Nothing found"),
    hits.length ? h("ol", { class: "docs-results" }, hits.map(result)) : none,
  ];
}

function result({ page, title, section, heading, slug, excerpt }) {
  const parts = excerpt.map(({ text, is_match }) => (is_match ? h("mark", null, text) : text));
  const place = slug ? `${page}/${slug}` : page;
  return h(
    "li",
    null,
    h("a", { href: `#/docs/${place}` }, heading ? `${title} › ${heading}` : title),
    h("span", { class: "muted docs-section" }, section),
    h("p", null, parts),
  );
}

/**
 * Let the arrow keys go through results.
 * @param {HTMLElement} field the field that the words are in
 * @param {HTMLElement} root the element that the results are in
 * @param {AbortSignal} signal ends it
 */
export function goByArrows(field, root, signal) {
  const move = (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [field, ...root.querySelectorAll(".docs-results a")];
    const at = links.indexOf(document.activeElement);
    const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (at < 0 || links.length === 1) return;
    event.preventDefault();
    next?.focus();
  };
  for (const element of [field, root]) element.addEventListener("keydown", move, { signal });
}
