// Before the first paint: the theme that was chosen here before, and the sign that scripts run.
(() => {
  const root = document.documentElement;
  root.classList.add("has-js");
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* storage may be closed to us; the system's theme then stays */ }
})();
