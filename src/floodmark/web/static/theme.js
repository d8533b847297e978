// Sets light or dark before the page is drawn. It follows the system until the button is used.
(function () {
  const kept = (() => { try { return localStorage.getItem("floodmark-theme"); } catch { return null; } })();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    button.addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
      const next = now === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try { localStorage.setItem("floodmark-theme", next); } catch { /* a private window */ }
      dispatchEvent(new Event("themechange"));
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));
})();
