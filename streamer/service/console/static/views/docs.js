/** The documentation, as it is shipped with the program. */

import { copyButton } from "../parts/copy_button.js";
import { goByArrows, searchResults } from "../parts/docs_search.js";
import { h, fill } from "../parts/dom.js";
import { later } from "../parts/later.js";
import { safeNodes } from "../parts/safe_html.js";

const PICTURE = /^pictures\/[\w.-]+$/;
const FIRST = "index";
const TYPING_MS = 200;
const WIDE = "(min-width: 901px)";
let sections = null;

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api, onLeave }) {
  sections ??= await api.get("console/docs-index");
  const article = h("article", { class: "card card-body prose" });
  const contents = h("nav", { class: "docs-contents", "aria-label": "On this page" });
  const list = h("div");
  const field = h("input", {
    type: "search",
    maxlength: 200,
    "aria-label": "Search the documentation",
    "aria-keyshortcuts": "/",
    placeholder: "Search  (press /)",
  });
  /** The page that is shown; null while results are. */
  let page = null;
  /** The page that was shown last, which the results give way to. */
  let last = FIRST;
  /** Counts what was asked for: an answer that was overtaken shows nothing. */
  let turn = 0;

  function fillList() {
    const link = ({ name, title, summary }) =>
      h(
        "li",
        null,
        h(
          "a",
          {
            href: `#/docs/${name}`,
            title: summary?.replace(/\[([^\]]*)\]\([^)]*\)|`/g, "$1"),
            "aria-current": name === page ? "page" : null,
          },
          title,
        ),
      );
    const group = ({ title, pages }) => [h("h2", null, title), h("ul", null, pages.map(link))];
    fill(list, h("ul", null, link({ name: FIRST, title: "All pages" })), sections.map(group));
  }

  async function open({ page: asked, at }) {
    const name = asked ?? FIRST;
    const mine = ++turn;
    if (name !== page) {
      const found = await api.get(`console/docs/${encodeURIComponent(name)}`);
      if (mine !== turn) return;
      page = last = name;
      field.value = "";
      document.title = `${found.title} · streamer`;
      fill(article, path(found), safeNodes(found.html, picture), neighbours(found));
      letCopy(article);
      letScroll(article);
      const seen = found.headings.filter(({ level }) => level === 2);
      const to = ({ slug, text }) =>
        h("li", null, h("a", { href: `#/docs/${name}/${slug}` }, text));
      fill(
        contents,
        seen.length > 1 && [h("h2", null, "On this page"), h("ul", null, seen.map(to))],
      );
      fillList();
    }
    const heading = article.querySelector(at ? `#${CSS.escape(`at-${at}`)}` : "h1");
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    if (at) heading.scrollIntoView({ block: "start" });
    else window.scrollTo(0, 0);
  }

  async function find(text, signal) {
    const mine = ++turn;
    const hits = await api.ask("GET", "console/docs-search", { query: { q: text }, signal });
    if (signal?.aborted || mine !== turn) return;
    page = null;
    document.title = `${text} · Documentation · streamer`;
    fill(article, searchResults(hits, text));
    fill(contents);
    fillList();
    window.scrollTo(0, 0);
  }

  function apply(given) {
    if (!given.q) return open(given);
    field.value = given.q;
    return find(given.q);
  }

  const typed = later(
    async (signal) => {
      const text = field.value.trim();
      // The address has the words, so that one can come back from a result.
      history.replaceState(null, "", text ? `#/docs?q=${encodeURIComponent(text)}` : `#/docs/${last}`);
      if (text) return find(text, signal);
      await open({ page: last });
      field.focus();
    },
    TYPING_MS,
    onLeave,
  );
  field.addEventListener("input", () => {
    turn += 1;
    typed();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && field.value.trim()) typed(true);
  });

  const listening = new AbortController();
  onLeave(() => listening.abort());
  goByArrows(field, article, listening.signal);
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
      event.preventDefault();
      field.focus();
      field.select();
    },
    { signal: listening.signal },
  );

  const pages = h("details", { class: "docs-list" }, h("summary", null, "All pages"), list);
  const wide = matchMedia(WIDE);
  const unfold = () => (pages.open = wide.matches);
  wide.addEventListener("change", unfold, { signal: listening.signal });
  unfold();
  const side = h("nav", { class: "docs-pages", "aria-label": "Pages" }, field, pages);
  root.append(h("div", { class: "docs" }, side, article, contents));
  await apply(params);
  side.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  return {
    update(given) {
      if (!wide.matches) pages.open = false;
      apply(given).catch((error) => {
        page = null;
        fill(
          article,
          h("h1", null, "This page cannot be shown"),
          h("p", { class: "wrong" }, error.message),
          h("p", null, h("a", { href: "#/docs" }, "All pages")),
        );
      });
      return true;
    },
  };
}

/** The groups that a page belongs to. */
function path({ section, above }) {
  if (!section) return null;
  const list = above && [" › ", h("a", { href: `#/docs/${above.name}` }, above.title)];
  return h("p", { class: "docs-path muted" }, section, list);
}

/** Links to the pages before and after. */
function neighbours({ previous, following }) {
  const link = (entry, rel, sign) =>
    entry
      ? h("a", { href: `#/docs/${entry.name}`, rel }, h("span", { class: "muted" }, sign), entry.title)
      : h("span");
  if (!previous && !following) return null;
  return h(
    "nav",
    { class: "docs-neighbours", "aria-label": "Previous and next page" },
    link(previous, "prev", "Previous"),
    link(following, "next", "Next"),
  );
}

/** Give each block of code a button that copies it. */
function letCopy(article) {
  for (const figure of article.querySelectorAll("figure")) {
    const name = figure.querySelector("figcaption")?.textContent;
    figure.append(copyButton(figure.querySelector("code"), `Copy ${name ?? "this block"}`));
  }
}

/** Let what is wider than the page be scrolled by keyboard, too. */
function letScroll(article) {
  for (const one of article.querySelectorAll("pre, table")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  }
}

/** Pictures are files of the console, beside this one's directory. */
function picture(src) {
  return PICTURE.test(src) ? new URL(`../${src}`, import.meta.url).href : null;
}
