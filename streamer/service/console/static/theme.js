// Runs before the page is drawn, so that it is not drawn in the other colours first.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("streamer.theme");
  } catch {
    // Storage may be forbidden: then the system's theme it is.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
