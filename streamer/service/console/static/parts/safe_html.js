/** HTML of the documentation, taken over element by element: what is not known here stays behind. */

const TAGS = new Set(
  (
    "a p h1 h2 h3 h4 h5 h6 ul ol li code pre em strong blockquote hr br img table thead tbody tr th td " +
    "figure figcaption span"
  ).split(" "),
);
const ATTRIBUTES = { a: ["href", "rel", "target"], img: ["alt"], ol: ["start"], "*": ["id"] };
const LINK = /^(#\/|https?:\/\/)/;

/**
 * Return the nodes of a text of HTML.
 * @param {string} html
 * @param {(src: string) => string | null} picture the address of a picture; null leaves it out
 * @returns {Node[]}
 */
export function safeNodes(html, picture) {
  const found = new DOMParser().parseFromString(html, "text/html");
  return [...found.body.childNodes].flatMap((node) => taken(node, picture));
}

function taken(node, picture) {
  if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.data)];
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const tag = node.localName;
  const children = [...node.childNodes].flatMap((child) => taken(child, picture));
  if (!TAGS.has(tag)) return children;
  const element = document.createElement(tag);
  for (const name of [...(ATTRIBUTES[tag] ?? []), ...ATTRIBUTES["*"]]) {
    const value = node.getAttribute(name);
    if (value !== null && (name !== "href" || LINK.test(value))) element.setAttribute(name, value);
  }
  if (tag === "img") {
    const src = picture(node.getAttribute("src") ?? "");
    if (src === null) return [];
    element.loading = "lazy";
    element.src = src;
  }
  element.append(...children);
  return [element];
}
