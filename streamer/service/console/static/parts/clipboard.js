/** Copying text, also where the page is served by plain HTTP and the browser offers no clipboard. */

/**
 * Copy a text.
 * @param {string} text
 * @returns {Promise<boolean>} whether the browser has taken it
 */
export async function copyText(text) {
  try {
    // Undefined in pages that come by plain HTTP; refused where the user has said so.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.setAttribute("aria-hidden", "true");
  field.className = "copied-text";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    focused?.focus({ preventScroll: true });
  }
}
