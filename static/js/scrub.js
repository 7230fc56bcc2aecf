// Sliders beside numbers: the field says what its slider stands at, and all is simulated again as it is dragged.
//
// One edit is on its way at a time, and what the slider passed over meanwhile is never sent. All edits of one drag follow
// the state before it, so that Undo goes back to there.
const PAUSE_MS = 100; // from an answer to the next edit
const WRITTEN = {
  count: (value) => String(Math.round(value)),
  rate: (value) => String(Number(value.toPrecision(3))),
  time: (value) => (value < 1 ? `${Number((value * 1000).toPrecision(2))} ms` : `${Number(value.toPrecision(2))} s`),
};

let dragged = null; // the slider that is held
let since = ""; // number of the state that its drag began at
let latest = null; // what is to be sent next
let sending = false;

// Also while a value is still to be sent: the answer to an older one would put that one back into the field.
export const isDragging = () => dragged !== null || latest !== null;

function textAt({ value, max, dataset: { low, high, written } }) {
  return WRITTEN[written](low * (high / low) ** (value / max));
}

async function send(post) {
  if (sending) return;
  sending = true;
  while (latest) {
    const values = latest;
    latest = null;
    await post(values);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  sending = false;
}

// `post` sends form values and resolves when they are answered; `revision` is the number of the state that is shown.
export function scrub(root, post, revision) {
  const queue = (slider) => {
    const field = slider.closest(".field").querySelector("input[name]"), text = textAt(slider);
    field.value = text;
    slider.setAttribute("aria-valuetext", text);
    latest = { [field.name]: text, since };
    send(post);
  };
  root.addEventListener("input", ({ target }) => {
    if (!target.matches(".scrub")) return;
    if (!dragged) since = revision();
    dragged = target;
    queue(target);
  });
  // Let go: the form, which stood still under the hand, comes with one more answer.
  const settle = () => {
    const slider = dragged;
    dragged = null;
    if (slider) queue(slider);
  };
  for (const kind of ["change", "pointerup", "pointercancel"]) document.addEventListener(kind, settle);
}
