/** The form that asks who one is. What is typed in stays in this tab of the browser. */

import { h, fill } from "./dom.js";

/**
 * Show the form.
 * @param {HTMLElement} root
 * @param {(header: string) => Promise<void>} enter takes an `Authorization` header; throws when
 *   it is refused
 */
export function signIn(root, enter) {
  const user = input("text", "username");
  const password = input("password", "current-password");
  const token = input("password", "off");
  const wrong = h("p", { class: "wrong", role: "alert" });
  const go = h("button", { type: "submit", class: "main" }, "Sign in");
  const form = h(
    "form",
    { class: "card sign-in" },
    h("h1", { tabindex: "-1" }, "Sign in"),
    h("p", { class: "muted" }, "This service asks who you are."),
    h("label", { class: "field" }, "User", user),
    h("label", { class: "field" }, "Password", password),
    h("p", { class: "or" }, "or"),
    h("label", { class: "field" }, "Bearer token", token),
    wrong,
    h("div", { class: "buttons" }, go),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    go.disabled = true;
    try {
      await enter(token.value ? `Bearer ${token.value.trim()}` : basic(user.value, password.value));
    } catch (error) {
      wrong.textContent =
        error.status === 401 ? "Neither is known to the service." : error.message;
    } finally {
      go.disabled = false;
    }
  });
  fill(root, form);
  user.focus();
}

function input(type, autocomplete) {
  return h("input", { type, autocomplete, spellcheck: "false", autocapitalize: "off" });
}

function basic(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}
