/** The documentation, as it is shipped with the program. */

import { h, fill } from "../parts/dom.js";
import { safeNodes } from "../parts/safe_html.js";

const PICTURE = /^pictures\/[\w.-]+$/;
const FIRST = "getting-started";
let pages = null;

/** @param {HTMLElement} root @param {object} context as all views have it */
export async function show(root, { params, api }) {
  pages ??= firstFirst(await api.get("console/docs"));
  const article = h("article", { class: "card card-body prose" });
  const list = h("ul");
  const filter = h("input", {
    type: "search",
    "aria-label": "Find a page",
    placeholder: "Find a page",
  });
  const contents = h("nav", { class: "docs-contents", "aria-label": "On this page" });
  let page = null;

  function links() {
    const word = filter.value.trim().toLowerCase();
    const fits = ({ name, title }) => `${name} ${title}`.toLowerCase().includes(word);
    const own = ({ name }) =>
      word || !name.startsWith("components.") || name === "components.README";
    const link = ({ name, title }) =>
      h(
        "li",
        null,
        h("a", { href: `#/docs/${name}`, "aria-current": name === page ? "page" : null }, title),
      );
    const found = pages.filter((one) => fits(one) && own(one));
    fill(
      list,
      found.length ? found.map(link) : h("li", { class: "muted" }, "No page of that name."),
    );
  }

  async function open({ page: asked, at }) {
    const name = asked ?? FIRST;
    if (name !== page) {
      const found = await api.get(`console/docs/${encodeURIComponent(name)}`);
      page = name;
      document.title = `${found.title} · streamer`;
      fill(article, safeNodes(found.html, picture));
      letScroll(article);
      const seen = found.headings.filter(({ level }) => level === 2);
      const to = ({ slug, text }) =>
        h("li", null, h("a", { href: `#/docs/${name}/${slug}` }, text));
      fill(
        contents,
        seen.length > 1 && [h("h2", null, "On this page"), h("ul", null, seen.map(to))],
      );
      links();
    }
    const heading = article.querySelector(at ? `#${CSS.escape(`at-${at}`)}` : "h1");
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    if (at) heading.scrollIntoView({ block: "start" });
    else window.scrollTo(0, 0);
  }

  filter.addEventListener("input", links);
  const side = h("nav", { class: "docs-pages", "aria-label": "Pages" }, filter, list);
  root.append(h("div", { class: "docs" }, side, article, contents));
  await open(params);
  return {
    update(given) {
      open(given).catch((error) =>
        fill(
          article,
          h("h1", null, "This page cannot be shown"),
          h("p", { class: "wrong" }, error.message),
        ),
      );
      return true;
    },
  };
}

function firstFirst(all) {
  const isFirst = ({ name }) => name === FIRST;
  return [...all.filter(isFirst), ...all.filter((one) => !isFirst(one))];
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
