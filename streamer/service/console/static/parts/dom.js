/** Elements, made without any HTML text: what comes from data stays text. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return an element.
 * @param {string} tag its name
 * @param {Record<string, any> | null} [attrs] attributes; `onX` functions listen to the event X;
 *   `style` is an object of properties; null, undefined and false leave an attribute out
 * @param {...any} children nodes, texts, or arrays of them; null and false are left out
 * @returns {HTMLElement}
 */
export function h(tag, attrs, ...children) {
  return filled(document.createElement(tag), attrs, children);
}

/**
 * Return an element of SVG; see `h`.
 * @param {string} tag its name
 * @param {Record<string, any> | null} [attrs] its attributes
 * @param {...any} children what is in it
 * @returns {SVGElement}
 */
export function s(tag, attrs, ...children) {
  return filled(document.createElementNS(SVG, tag), attrs, children);
}

/**
 * Put other children into an element.
 * @param {Element} element
 * @param {...any} children as of `h`
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * Let an element say a text, if it says another one: what is selected or read aloud stays.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function filled(element, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") {
      for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
}
