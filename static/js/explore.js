// A sweep as its cells finish: the count at once, the pictures as often as they can be drawn; a point becomes a scenario.
import { adopt, keep } from "./plots.js";
import { reveal } from "./page.js";
import { LogSocket } from "./socket.js";

const LEAST_MS = 700;
let wanted = false, busy = false, last = 0;

const place = () => document.querySelector("#sweep[data-part]");
const state = () => document.querySelector("[data-sweep]");

async function renew() {
  if (busy) { wanted = true; return; }
  busy = true;
  wanted = false;
  await new Promise((resolve) => { setTimeout(resolve, Math.max(0, last + LEAST_MS - performance.now())); });
  const began = performance.now();
  try {
    const address = new URL(place().dataset.part, location.href);
    const metric = new URL(location.href).searchParams.get("metric");
    if (metric) address.searchParams.set("metric", metric);
    const answer = await fetch(address);
    if (answer.ok) put(await answer.text());
  } catch { /* the next event asks again */ }
  last = performance.now() + 2 * (performance.now() - began);
  busy = false;
  if (wanted) renew();
}

function put(html) {
  const room = place(), focus = document.activeElement;
  const index = room.contains(focus) && focus.name === "index" ? focus.value : null;
  const open = [...room.querySelectorAll("details[open]")].map((one) => one.closest("figure")?.id);
  const kept = keep(room);
  room.innerHTML = html;
  adopt(room, kept);
  reveal(room);
  for (const id of open) room.querySelector(`#${CSS.escape(id ?? "")} details`)?.setAttribute("open", "");
  if (index !== null) room.querySelector(`button[name=index][value="${index}"]`)?.focus({ preventScroll: true });
  picks();
}

function counted(event) {
  if (event.kind === "sweep.cells") {
    const shown = state();
    shown.dataset.done = Number(shown.dataset.done) + event.payload.cells.length;
    shown.querySelector("progress").value = shown.dataset.done;
    shown.querySelector("[data-done-count]").textContent = shown.dataset.done;
  }
  if (event.kind !== "sweep.queued") renew();
}

const listened = new WeakSet();

// Plotly draws late: a plot is listened to when it is there.
function picks() {
  for (const plot of document.querySelectorAll("#sweep .plot")) {
    if (listened.has(plot)) continue;
    if (!plot.on) { setTimeout(picks, 300); continue; }
    listened.add(plot);
    plot.on("plotly_click", ({ points: [point] }) => {
      if (point.customdata === undefined) return;
      const form = document.getElementById("use-cell"), input = document.createElement("input");
      Object.assign(input, { type: "hidden", name: "index", value: point.customdata });
      form.append(input);
      form.requestSubmit();
    });
  }
}

adopt(document);
if (state()) {
  picks();
  const { sweep, after, status } = state().dataset;
  if (!["finished", "failed", "cancelled"].includes(status)) {
    new LogSocket(`/ws/sweeps/${sweep}/`, Number(after), counted, (how) => { if (how === "over") renew(); });
  }
}
document.documentElement.dataset.live = "";
