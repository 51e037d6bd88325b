/** The form that asks who one is. What is typed in stays in this tab of the browser. */

import { h, fill } from "./dom.js";

/**
 * Show the form.
 * @param {HTMLElement} root
 * @param {(header: string) => Promise<void>} enter takes an `Authorization` header; throws when
 *   it is refused
 * @param {string[]} schemes those that the service takes: `basic`, `bearer`; both when it is empty
 */
export function signIn(root, enter, schemes) {
  const [basic, bearer] = ["basic", "bearer"].map((one) => !schemes.length || schemes.includes(one));
  const user = input("text", "username");
  const password = input("password", "current-password");
  const token = input("password", "off");
  const wrong = h("p", { class: "wrong", role: "alert" });
  const go = h("button", { type: "submit", class: "main" }, "Sign in");
  const named = [basic && "user and password", bearer && "token"].filter(Boolean).join(", or ");
  const form = h(
    "form",
    { class: "card sign-in" },
    h("h1", { tabindex: "-1" }, "Sign in"),
    h("p", { class: "muted" }, `This service needs a ${named}.`),
    basic && [h("label", { class: "field" }, "User", user), h("label", { class: "field" }, "Password", password)],
    basic && bearer && h("p", { class: "or" }, "or"),
    bearer && h("label", { class: "field" }, "Bearer token", token),
    wrong,
    h("div", { class: "buttons" }, go),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    go.disabled = true;
    const header = token.value || !basic ? `Bearer ${token.value.trim()}` : basicHeader(user.value, password.value);
    try {
      await enter(header);
    } catch (error) {
      wrong.textContent = error.status === 401 ? refusal(basic, bearer) : error.message;
    } finally {
      go.disabled = false;
    }
  });
  fill(root, form);
  (basic ? user : token).focus();
}

function refusal(basic, bearer) {
  if (basic && bearer) return "Wrong user, password or token.";
  return basic ? "Wrong user or password." : "Wrong token.";
}

function input(type, autocomplete) {
  return h("input", { type, autocomplete, spellcheck: "false", autocapitalize: "off" });
}

function basicHeader(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}
