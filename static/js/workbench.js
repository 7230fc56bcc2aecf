// The workbench: edits go out one field at a time, results come back over the socket, numbers explain themselves.
//
// Closed forms, fabric and findings are drawn by the server: on each such event the panel is fetched again. The series of
// a running simulation are drawn here, column by column, at most once per frame. What was there before stays, greyed,
// until there is something newer; nothing is blanked and nothing is drawn ahead of the data.
import { adopt, figureOf, keep, redraw } from "./plots.js";
import { reveal, say, typing } from "./page.js";
import { isDragging, scrub } from "./scrub.js";
import { RunSocket } from "./socket.js";

const root = document.getElementById("workbench");
const find = (selector, scope = document) => scope.querySelector(selector);
const marker = () => find("#run");
const WHY_EMPTY = find("#why").innerHTML;
const REFRESH_MS = 150;
const UNDRAWN = new Set(["run.stage", "run.finding", "run.warning", "run.figure"]);

let socket = null, baselineSocket = null;
let buffered = []; // series events of this run, kept to be drawn again over a panel that is older than they are
let drawnSeq = 0;
let sameRun = true; // whether what is drawn is of the run that is followed
let whyMetric = null;
let whyOpener = null;

// --- the run ----------------------------------------------------------------------------------------------------------

function follow() {
  followBaseline();
  const { run, after, status } = marker().dataset;
  if (socket && socket.run === run && !socket.closed) return;
  socket?.close();
  socket = null;
  buffered = [];
  drawnSeq = Number(after || 0);
  if (run && !["finished", "failed", "cancelled"].includes(status)) socket = new RunSocket(run, drawnSeq, onEvent, onState);
}

// The baseline may still be running: when it ends, every change can be told.
function followBaseline() {
  const { baseline, baselineAfter } = marker().dataset;
  if (baselineSocket?.run === baseline) return;
  baselineSocket?.close();
  baselineSocket = null;
  if (!baseline) return;
  const ended = () => refresh(true);
  baselineSocket = new RunSocket(baseline, Number(baselineAfter), (event) => { if (/finished|failed|cancelled/.test(event.kind)) ended(); },
    (state) => { if (state === "over") ended(); });
}

function onState(state) {
  const line = find("#status .stream");
  if (state === "lost" && line && !find("[data-offline]", line)) {
    line.insertAdjacentHTML("beforeend", '<span data-offline class="worse">…</span>');
  }
  if (state === "open") find("#status [data-offline]")?.remove();
  if (state === "over") refresh(true);
}

function onEvent(event) {
  const { kind, payload } = event;
  if (kind === "run.series") onSeries(event);
  else if (kind === "run.reset") { buffered = []; refresh(true); }
  else if (payload.stage === "closed_forms") return; // the page came with them
  else if (kind === "run.started") refresh(false, REFRESH_MS); // the first slice is on its way: let it pass first
  else if (UNDRAWN.has(kind)) refresh(false);
  else refresh(true);
  if (payload.progress_fraction !== undefined) progress(payload);
}

function progress(payload) {
  const text = find("#status [data-progress]"), rail = find("#status [data-rail]");
  const percent = `${(payload.progress_fraction * 100).toFixed(0)} %`;
  if (text) text.textContent = payload.request_count
    ? `${percent} (${Number(payload.completed_count).toLocaleString("en")} / ${Number(payload.request_count).toLocaleString("en")})` : percent;
  if (rail) rail.style.width = `${payload.progress_fraction * 100}%`;
  if (!text) refresh(false);
}

function onSeries(event) {
  buffered.push(event);
  if (event.seq > drawnSeq) append(event);
}

function append({ payload }) {
  for (const plot of document.querySelectorAll(".plot[data-figure]")) {
    const figure = figureOf(plot.id);
    if (!figure || figure.layout.meta?.series !== payload.name) continue;
    for (const trace of figure.data) {
      const added = payload.columns[trace.meta?.column];
      if (!added) continue;
      for (const time of payload.columns.time_s) trace.x.push(time);
      for (const value of added) trace.y.push(value);
    }
    plot.closest("figure").classList.remove("stale");
    redraw(plot.id);
    noteFirstData();
  }
}

// When the first data of an edit's run stood in a chart: as a slice of its stream, or in a panel that came before.
function noteFirstData() {
  const plots = [...document.querySelectorAll(".plot[data-figure]")].map((plot) => figureOf(plot.id));
  if (plots.some((figure) => figure?.layout.meta?.series && figure.data[0].x.length)) {
    document.documentElement.dataset.firstData ??= Math.round(performance.now());
  }
}

// --- the panel --------------------------------------------------------------------------------------------------------

let timer = 0, fetching = false, again = false, lastFetch = 0;
let actCount = 0; // what the user has posted

function refresh(now, least = 0) {
  clearTimeout(timer);
  const due = now ? 0 : Math.max(least, REFRESH_MS - (performance.now() - lastFetch));
  timer = setTimeout(fetchPanel, due);
}

async function fetchPanel() {
  if (fetching) { again = true; return; }
  const { run, panel } = marker().dataset;
  if (!run || !panel) return;
  fetching = true;
  lastFetch = performance.now();
  const before = actCount;
  try {
    const answer = await fetch(panel, { headers: { "HX-Request": "true" } }), html = await answer.text();
    if (actCount !== before) again = true; // it may not know what was done since it was asked for
    else if (answer.ok && marker().dataset.run === run) show(html);
  } catch { refresh(false); } finally {
    fetching = false;
    if (again) { again = false; refresh(false); }
  }
}

// Put an answer's parts in the place of what they renew: a whole workbench after an edit, or a run's results as they come.
function show(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html"), news = find("#run", fresh);
  const old = find("#panel"), panel = find("#panel", fresh);
  for (const part of ["#said", "#idbar", "#status"]) swap(part, fresh);
  swapOutline(fresh);
  drawnSeq = Number(news?.dataset.after ?? drawnSeq);
  marker().dataset.status = news?.dataset.status ?? "";
  buffered = buffered.filter((event) => event.seq > drawnSeq);
  const ended = ["failed", "cancelled"].includes(news?.dataset.status);
  if (panel?.dataset.partial && !old.dataset.empty && old.dataset.tab === panel.dataset.tab) {
    renewParts(old, panel);
  } else if (panel && (!panel.dataset.empty || ended || old.dataset.empty)) {
    const open = openDetails(old), kept = keep(old), focus = focusIn(old), opened = sameRun && find(".expansion[data-open]", old);
    old.replaceWith(panel);
    if (opened) find(".expansion", panel)?.replaceWith(opened);
    restoreDetails(open);
    focus(panel);
    adopt(panel, kept);
    buffered.forEach(append);
    noteFirstData();
    swap("#strip", fresh);
  } else if (!sameRun) emptySeries();
  sameRun = true;
  reveal(root);
  reloadWhy();
}

// While a run streams, what it has said replaces its like; all else stays from before, greyed, until it comes too.
function renewParts(old, panel) {
  old.classList.remove("stale");
  const kept = keep(old), news = [...panel.querySelectorAll("figure[id]")];
  const staying = [...old.children, ...old.querySelectorAll("figure[id]")].filter((one) => !one.matches(".charts"));
  staying.forEach((one) => one.classList.add("stale"));
  find(".guard", old)?.remove();
  const guard = find(".guard", panel);
  if (guard) find(".charts", old).before(guard);
  for (const figure of news) {
    const before = find(`#${CSS.escape(figure.id)}`, old);
    if (before) before.replaceWith(figure); else find(".charts", old).append(figure);
  }
  news.forEach((figure) => adopt(figure, kept));
  buffered.forEach(append);
  noteFirstData();
}

// What is the same stays where it is, so that a press under way is not lost; only the token differs in every answer.
function swap(selector, fresh) {
  const old = find(selector), one = find(selector, fresh);
  if (!old || !one) return;
  const [had, has] = [old, one].map((part) => [...part.querySelectorAll("[name=csrfmiddlewaretoken]")]);
  has.forEach((token, place) => token.setAttribute("value", had[place]?.getAttribute("value") ?? token.value));
  renew(old, one);
}

function renew(old, one) {
  if (old.isEqualNode(one)) return;
  const [had, has] = [old, one].map((part) => [...part.children]);
  if (old.tagName !== one.tagName || had.length !== has.length) { old.replaceWith(one); return; }
  for (const name of new Set([...old.getAttributeNames(), ...one.getAttributeNames()])) {
    if (one.hasAttribute(name)) old.setAttribute(name, one.getAttribute(name)); else old.removeAttribute(name);
  }
  if (ownText(old) !== ownText(one)) old.replaceChildren(...one.childNodes);
  else had.forEach((part, place) => renew(part, has[place]));
}

const ownText = (part) => [...part.childNodes].map((one) => one.nodeType === Node.TEXT_NODE ? one.data.trim() : "|").join("");

// The form is renewed around the field that is being typed in: what is in it and which sections are open stay.
function swapOutline(fresh) {
  const old = find("#outline"), form = find("#outline", fresh);
  if (!old || !form || isDragging()) return;
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const typed = active?.tagName === "INPUT" && active.value !== active.defaultValue ? active.value : null;
  for (const section of old.querySelectorAll("details")) {
    const one = find(`#${section.id}`, form);
    if (one && !find("[aria-invalid]", one)) one.open = section.open;
  }
  old.replaceWith(form);
  const field = active?.id && document.getElementById(active.id);
  if (field) {
    if (typed !== null) field.value = typed;
    field.focus({ preventScroll: true });
  }
  find("[aria-invalid]", form)?.scrollIntoView({ block: "nearest" });
}

// Whoever is on a link of what is renewed stays on it.
function focusIn(old) {
  const active = old.contains(document.activeElement) ? document.activeElement : null, href = active?.getAttribute("href");
  return (panel) => {
    if (!active) return;
    const again = panel.contains(active) ? active : href && find(`a[href="${CSS.escape(href)}"]`, panel);
    again?.focus?.({ preventScroll: true });
  };
}

const openDetails = (scope) => [...scope.querySelectorAll("figure details")].filter((one) => one.open).map((one) => one.closest("figure").id);
const restoreDetails = (ids) => ids.forEach((id) => { const details = find(`#${CSS.escape(id)} details`); if (details) details.open = true; });

// --- edits ------------------------------------------------------------------------------------------------------------

let waiting = Promise.resolve();

function post(action, values) {
  actCount += 1;
  find("#panel").classList.add("stale");
  find("#strip").classList.add("stale");
  const csrf = find("[name=csrfmiddlewaretoken]").value;
  document.documentElement.dataset.edited = Math.round(performance.now());
  delete document.documentElement.dataset.firstData;
  waiting = waiting.then(() => htmx.ajax("POST", action, {
    target: "#workbench", swap: "none", source: root,
    values: { ...values, tab: marker().dataset.tab, csrfmiddlewaretoken: csrf },
  })).catch(() => unanswered(document.body.dataset.unreachable));
  return waiting;
}

// An edit's answer: the socket of the new run is opened before anything is drawn, so that both happen at once.
function onAnswer(html) {
  const tag = /<div id="run"[^>]*>/.exec(html)?.[0];
  if (!tag) return;
  const holder = document.createElement("template");
  holder.innerHTML = `${tag}</div>`;
  sameRun = holder.content.firstElementChild.dataset.run === marker().dataset.run;
  marker().replaceWith(holder.content.firstElementChild);
  follow();
  find("#panel").classList.toggle("stale", !sameRun);
  find("#strip").classList.toggle("stale", !sameRun);
  show(html);
}

// A new run streams from its own beginning; until its first data, the old line stays, greyed like the other charts.
function emptySeries() {
  for (const plot of document.querySelectorAll(".plot[data-figure]")) {
    const figure = figureOf(plot.id);
    if (!figure?.layout.meta?.series) continue;
    for (const trace of figure.data) { trace.x = []; trace.y = []; }
  }
}

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target !== root) return;
  event.detail.shouldSwap = false;
  onAnswer(event.detail.serverResponse);
});
function unanswered(text) {
  document.querySelectorAll(".stale").forEach((one) => one.classList.remove("stale"));
  say(text);
}

document.addEventListener("htmx:responseError", (event) => unanswered(`${event.detail.xhr.status} ${event.detail.xhr.statusText}`));
document.addEventListener("htmx:sendError", () => unanswered(document.body.dataset.unreachable));

root.addEventListener("change", (event) => {
  const field = event.target;
  if (field.form?.id !== "outline" || !field.name) return;
  event.stopPropagation();
  if (field.dataset.sent === field.value) return; // a field that is replaced while it has the focus changes once more
  field.dataset.sent = field.value;
  post(field.form.action, { [field.name]: field.value });
});

scrub(root, (values) => post(find("#outline").action, values), () => marker().dataset.revision ?? "");

root.addEventListener("submit", (event) => {
  const form = event.target, button = event.submitter;
  const inPlace = form.id === "outline" || ["edit", "undo", "redo", "pin", "cancel"].includes(form.dataset.act);
  if (!inPlace) return;
  event.preventDefault();
  const values = button?.name ? { [button.name]: button.value } : {};
  if (form.dataset.act === "edit") form.querySelectorAll("input[name]").forEach((one) => { values[one.name] ??= one.value; });
  if (form.id === "outline" && !button?.name) return; // Enter in a field: the change event has sent it
  post(form.action, values);
});

// Arrows step a number that is being edited: the last digit that is written, ten of them with Shift.
root.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.matches?.("#outline input:not(.scrub)") || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
  const text = field.value || field.placeholder.replaceAll(",", ""), match = /^([x×]?)(-?\d+)(\.\d+)?(.*)$/.exec(text.trim());
  if (!match) return;
  event.preventDefault();
  const digits = (match[3] ?? "").length ? match[3].length - 1 : 0;
  const step = 10 ** -digits * (event.shiftKey ? 10 : 1) * (event.key === "ArrowUp" ? 1 : -1);
  field.value = match[1] + (Number(match[2] + (match[3] ?? "")) + step).toFixed(digits) + match[4];
  clearTimeout(field.stepTimer);
  field.stepTimer = setTimeout(() => field.dispatchEvent(new Event("change", { bubbles: true })), 350);
});

// --- Why --------------------------------------------------------------------------------------------------------------

async function openWhy(metric, opener) {
  const { run } = marker().dataset;
  if (!run) return;
  whyMetric = metric;
  find("#bench").dataset.why = "open";
  document.querySelectorAll(".q[aria-expanded]").forEach((one) => one.removeAttribute("aria-expanded"));
  opener?.setAttribute("aria-expanded", "true");
  const answer = await fetch(opener?.href?.baseVal ?? opener?.href ?? `/runs/${run}/why/${metric}/`, { headers: { "HX-Request": "true" } });
  if (!answer.ok || whyMetric !== metric) return;
  find("#why").innerHTML = await answer.text();
  if (opener && innerWidth <= 1180) find("#why").scrollIntoView({ block: "start" });
  resizePlots();
}

function reloadWhy() {
  if (marker().dataset.status === "failed") find("#why").innerHTML = WHY_EMPTY; // no number is left to explain
  const open = find("#bench").dataset.why === "open";
  if (!open || marker().dataset.status !== "finished") return;
  const first = find('[data-why="compute.decode_step_s"]') ?? find("#strip [data-why]");
  const metric = whyMetric && find(`[data-why="${whyMetric}"]`) ? whyMetric : innerWidth > 1180 ? first?.dataset.why : null;
  if (metric) openWhy(metric, null);
}

function toggleWhy() {
  const bench = find("#bench");
  bench.dataset.why = bench.dataset.why === "open" ? "closed" : "open";
  if (bench.dataset.why === "open") { reloadWhy(); find("#why").focus({ preventScroll: innerWidth > 1180 }); } else whyOpener?.focus();
  resizePlots();
}

const resizePlots = () => document.querySelectorAll(".plot[data-drawn]").forEach((plot) => redraw(plot.id));

root.addEventListener("click", (event) => {
  const number = event.target.closest("a[data-why]");
  if (!number || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  whyOpener = number;
  openWhy(number.dataset.why, number);
});

// --- keys -------------------------------------------------------------------------------------------------------------

const press = (act) => find(`[data-act="${act}"] button:not([disabled]), a[data-act="${act}"]`)?.click();
const KEYS = { b: () => press("pin"), f: () => press("fork"), d: () => press("diff"), s: () => press("share"), w: toggleWhy };

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.target.closest("input, textarea")) {
    event.preventDefault();
    press(event.shiftKey ? "redo" : "undo");
    return;
  }
  if (typing(event)) return;
  if (event.key === "/") { event.preventDefault(); find("#outline :is(input, select):not([type=hidden])")?.focus(); return; }
  KEYS[event.key]?.();
});

adopt(document);
reveal(document);
follow();
reloadWhy();
document.documentElement.dataset.live = ""; // from here on the page answers to what is typed
