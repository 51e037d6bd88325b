// What of a page cannot be read or told apart: controls without names, and texts of weak contrast.
() => {
  const wrong = [];
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const label = (e) =>
    e.getAttribute("aria-label") ||
    (e.getAttribute("aria-labelledby") || "")
      .split(" ")
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join("") ||
    [...(e.labels ?? [])].map((one) => one.textContent).join("") ||
    e.title ||
    (/^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName) ? "" : e.textContent.trim());
  for (const e of document.querySelectorAll(
    "a[href], button, input, select, textarea, [role=region], [role=listbox]",
  )) {
    if (shown(e) && !label(e)) wrong.push(`no name: ${e.outerHTML.slice(0, 120)}`);
  }
  for (const e of document.querySelectorAll("th"))
    if (shown(e) && !e.textContent.trim() && !label(e)) wrong.push("a header without words");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids))
    if (ids.filter((one) => one === id).length > 1) wrong.push(`id twice: ${id}`);
  if (document.querySelectorAll("main h1").length !== 1) wrong.push("not one h1");

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) =>
    [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    if (!e) return [255, 255, 255, 1];
    const own = rgba(getComputedStyle(e).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(e.parentElement));
  };
  const light = (c) => {
    const [r, g, b] = c
      .slice(0, 3)
      .map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || !shown(e) || e.closest("textarea, script, option, :disabled, svg"))
      continue;
    const style = getComputedStyle(e);
    const below = ground(e);
    const [one, other] = [light(over(rgba(style.color), below)), light(below)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      wrong.push(`contrast ${ratio.toFixed(2)}: ${node.data.trim().slice(0, 40)} (${e.className})`);
  }
  return [...new Set(wrong)];
}
