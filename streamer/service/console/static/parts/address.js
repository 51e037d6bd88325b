/** What a page shows, kept in its address: a reload and a link lead to the same. */

/**
 * Put parameters behind the path of the address, in place of those that are there.
 * @param {Record<string, string>} query empty values are left out
 */
export function keepInAddress(query) {
  const path = document.location.hash.split("?")[0] || "#/";
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  history.replaceState(null, "", text ? `${path}?${text}` : path);
}
