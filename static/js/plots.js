// Plotly, loaded once and late: figures come from the server as JSON whose colours are names of CSS variables.
let loading = null;

function library() {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  loading ??= new Promise((resolve, reject) => {
    let script = [...document.scripts].find((one) => one.src.includes("/plotly.min.js"));
    if (!script) {
      script = document.createElement("script");
      script.src = document.body.dataset.plotly;
      script.async = true;
      document.head.append(script);
    }
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => { loading = null; reject(new Error("plotly did not load")); });
    if (window.Plotly) resolve(window.Plotly);
  });
  return loading;
}

const probe = document.createElement("span");
probe.hidden = true;

function resolved(value) {
  if (typeof value === "string" && value.startsWith("var(")) {
    if (!probe.isConnected) document.body.append(probe);
    if (value.includes("--sans") || value.includes("--serif") || value.includes("--mono")) {
      probe.style.fontFamily = value;
      return getComputedStyle(probe).fontFamily;
    }
    probe.style.color = value;
    return getComputedStyle(probe).color;
  }
  if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(resolved);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item)]));
  return value;
}

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
const figures = new Map(); // plot id -> the figure as the server gave it, with what has streamed since
const wanted = new Set();
let frame = 0;

export const figureOf = (id) => figures.get(id);

export function setFigure(id, figure) {
  figures.set(id, figure);
  redraw(id);
}

export function redraw(id) {
  wanted.add(id);
  if (!frame) frame = requestAnimationFrame(draw);
}

async function draw() {
  const Plotly = await library();
  frame = 0;
  const ids = [...wanted];
  wanted.clear();
  for (const id of ids) {
    const plot = document.getElementById(id), figure = figures.get(id);
    if (!plot || !figure || !plot.offsetWidth) continue;
    const shown = resolved(figure);
    // Plotly compares arrays by identity: hand it new ones.
    for (const trace of shown.data) { trace.x = trace.x.slice(); trace.y = trace.y.slice(); }
    shown.layout.datarevision = performance.now();
    shown.layout.uirevision = id;
    shown.layout.height = plot.clientHeight;
    await Plotly.react(plot, shown.data, shown.layout, CONFIG);
    plot.classList.remove("waiting");
    if (!plot.dataset.drawn) plot.dataset.drawn = Math.round(performance.now());
  }
}

// Read the figures of a part of the page; a plot that was drawn before keeps its node, and so its zoom.
export function adopt(scope, kept = new Map()) {
  for (const plot of [...scope.querySelectorAll(".plot[data-figure]")]) {
    const source = document.getElementById(plot.dataset.figure);
    if (!source) continue;
    const figure = JSON.parse(source.textContent);
    const old = kept.get(plot.id);
    if (old) plot.replaceWith(old);
    setFigure(plot.id, figure);
  }
}

export const keep = (scope) => new Map([...scope.querySelectorAll(".plot[data-drawn]")].map((plot) => [plot.id, plot]));

export async function savePlot(plot, name) {
  const Plotly = await library();
  await Plotly.downloadImage(plot, { format: "svg", filename: name, width: plot.clientWidth, height: plot.clientHeight });
}

const redrawAll = () => figures.forEach((_figure, id) => redraw(id));
document.addEventListener("themechange", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
document.addEventListener("toggle", redrawAll, true);
