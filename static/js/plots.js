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

const styles = new Map(); // a variable's name -> what it is in this theme

function resolved(value) {
  if (typeof value === "string" && value.startsWith("var(")) {
    if (!styles.has(value)) styles.set(value, computed(value));
    return styles.get(value);
  }
  if (Array.isArray(value)) return typeof value[0] === "number" && typeof value.at(-1) === "number" ? value : value.map(resolved);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item)]));
  return value;
}

function computed(value) {
  if (!probe.isConnected) document.body.append(probe);
  if (value.includes("--sans") || value.includes("--serif") || value.includes("--mono")) {
    probe.style.fontFamily = value;
    return getComputedStyle(probe).fontFamily;
  }
  probe.style.color = value;
  return getComputedStyle(probe).color;
}

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
const figures = new Map(); // plot id -> the figure as the server gave it, with what has streamed since
const wanted = new Set();
let frame = 0;

const waits = (figure) => Boolean(figure.layout.meta?.series) && !figure.data[0].x.length; // for the first slice

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
    if (!plot || !figure || !plot.offsetWidth || (plot.dataset.drawn && waits(figure))) continue;
    const shown = resolved(figure);
    // Plotly compares arrays by identity: hand it new ones.
    for (const trace of shown.data) {
      for (const axis of ["x", "y"]) if (trace[axis]) trace[axis] = trace[axis].slice(); // a grid of cells has neither
    }
    shown.layout.datarevision = performance.now();
    shown.layout.uirevision = id;
    shown.layout.height = plot.clientHeight;
    await Plotly.react(plot, shown.data, shown.layout, CONFIG);
    plot.classList.remove("waiting");
    if (!plot.dataset.drawn) plot.dataset.drawn = Math.round(performance.now());
    if (ids.length > 1) await new Promise((resolve) => setTimeout(resolve)); // slices of a stream need not wait for all
  }
}

// Read the figures of a part of the page; a plot that was drawn before keeps its node, and so its zoom. A stream that
// has not begun draws nothing: what was there before stays, greyed, until its first slice.
export function adopt(scope, kept = new Map()) {
  for (const plot of [...scope.querySelectorAll(".plot[data-figure]")]) {
    const source = document.getElementById(plot.dataset.figure);
    if (!source) continue;
    const figure = JSON.parse(source.textContent);
    const old = kept.get(plot.id);
    if (old) plot.replaceWith(old);
    if (old && waits(figure)) old.closest("figure").classList.add("stale");
    setFigure(plot.id, figure);
  }
}

export const keep = (scope) => new Map([...scope.querySelectorAll(".plot[data-drawn]")].map((plot) => [plot.id, plot]));

export async function savePlot(plot, name) {
  const Plotly = await library();
  await Plotly.downloadImage(plot, { format: "svg", filename: name, width: plot.clientWidth, height: plot.clientHeight });
}

const redrawAll = () => { styles.clear(); figures.forEach((_figure, id) => redraw(id)); };
document.addEventListener("themechange", redrawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
// What was folded away had no width to draw in.
document.addEventListener("toggle", (event) => event.target.querySelectorAll(".plot").forEach((plot) => redraw(plot.id)), true);
