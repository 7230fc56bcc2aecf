// What every page has: theme, language of keys, file inputs that submit, tables as CSV, pictures as SVG.
import { savePlot } from "./plots.js";

const root = document.documentElement;

export function say(text) {
  const line = document.createElement("div");
  line.textContent = text;
  document.getElementById("toasts").replaceChildren(line);
  setTimeout(() => line.remove(), 6000);
}

function toggleTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* not kept, still switched */ }
  document.dispatchEvent(new Event("themechange"));
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const cellText = (cell) => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll(".sr").forEach((hidden) => hidden.remove());
  return copy.textContent.trim().replace(/\s+/g, " ");
};

function saveTable(figure) {
  const rows = [...figure.querySelectorAll("table tr")].map((row) =>
    [...row.cells].map((cell) => `"${cellText(cell).replaceAll('"', '""')}"`).join(","));
  download(`${figure.id}.csv`, "text/csv;charset=utf-8", rows.join("\r\n") + "\r\n");
}

const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor", "paint-order"];

function flatten(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, index) => {
    const style = getComputedStyle(node);
    to[index].setAttribute("style", STYLED.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  const box = svg.getBoundingClientRect();
  copy.setAttribute("width", box.width);
  return { markup: copy.outerHTML, width: box.width, height: box.height };
}

function savePicture(figure) {
  const plot = figure.querySelector(".plot");
  if (plot) { savePlot(plot, figure.id); return; }
  const parts = [...figure.querySelectorAll("svg.art")].filter((svg) => !svg.parentElement.closest("svg")).map(flatten);
  let y = 0;
  const body = parts.map((part) => { const here = `<g transform="translate(0 ${y})">${part.markup}</g>`; y += part.height; return here; });
  const width = Math.max(...parts.map((part) => part.width));
  const hatches = document.querySelector("body > svg defs");
  const defs = hatches ? flatten(hatches.ownerSVGElement).markup : "";
  download(`${figure.id}.svg`, "image/svg+xml",
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}">${defs}${body.join("")}</svg>`);
}

const ACTIONS = {
  theme: toggleTheme,
  keys: () => document.getElementById("keys").showModal(),
  csv: (button) => saveTable(button.closest("figure")),
  svg: (button) => savePicture(button.closest("figure")),
};

export function reveal(scope) {
  scope.querySelectorAll("[data-action][hidden]").forEach((button) => { button.hidden = false; });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-action]");
  if (button) ACTIONS[button.dataset.action](button);
  const risky = event.target.closest("[data-confirm]");
  if (risky && !confirm(risky.dataset.confirm)) event.preventDefault();
  document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
});

// A part of the fabric's graph opens below its picture; where there is no room for it the link leads to its page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-expand]"), place = () => document.querySelector(".expansion");
  if (!link || !place() || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await fetch(link.href.baseVal ?? link.href, { headers: { "HX-Request": "true" } });
  if (!answer.ok) return;
  const html = await answer.text(), room = place(); // the panel may have been renewed meanwhile
  room.innerHTML = html;
  room.dataset.open = "";
  reveal(room);
  room.tabIndex = -1;
  room.focus({ preventScroll: true });
  room.scrollIntoView({ block: "nearest" });
});

document.addEventListener("change", (event) => {
  if (event.target.matches("input[type=file][data-submit]") && event.target.files.length) event.target.form.requestSubmit();
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
});

export const typing = (event) =>
  event.target.closest("input, select, textarea, [contenteditable], dialog[open]") || event.metaKey || event.ctrlKey || event.altKey;

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.querySelectorAll("details.menu[open]").forEach((menu) => { menu.open = false; });
  if (typing(event)) return;
  if (event.key === "?") { event.preventDefault(); ACTIONS.keys(); }
  if (event.key === "/" && document.getElementById("text")) { event.preventDefault(); document.getElementById("text").focus(); }
});

// Home: Enter in the paste box opens the baseline; Shift-Enter is a new line.
document.getElementById("text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.target.value.includes("\n")) {
    event.preventDefault();
    event.target.form.requestSubmit(event.target.form.querySelector(".primary"));
  }
});

reveal(document);
