/** The switch between light, dark, and what the system wants. */

import { h, fill } from "./dom.js";

const KEPT = "streamer.theme";
const ORDER = ["system", "light", "dark"];

/** Let a button switch the theme. @param {HTMLButtonElement} button */
export function themeSwitch(button) {
  let chosen = document.documentElement.dataset.theme ?? "system";

  function tell() {
    fill(button, h("span", { class: "wide" }, "Theme: "), chosen);
    button.setAttribute("aria-label", `Theme: ${chosen}`);
  }

  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem(KEPT, chosen);
    } catch {
      // Storage may be forbidden: then it holds until the page is left.
    }
    tell();
  });
  tell();
}
