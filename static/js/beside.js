// One scenario in several ways: runs that are under way are followed, and the page renewed when one ends.
import { adopt, keep } from "./plots.js";
import { reveal } from "./page.js";
import { RunSocket } from "./socket.js";

const sockets = new Map(); // run id -> the socket that follows it

function follow() {
  for (const { dataset } of document.querySelectorAll("#compared [data-run]")) {
    if (sockets.has(dataset.run)) continue;
    const ended = (event) => { if (/finished|failed|cancelled/.test(event.kind)) renew(); };
    sockets.set(dataset.run, new RunSocket(dataset.run, Number(dataset.after), ended, (state) => { if (state === "over") renew(); }));
  }
}

let renewing = Promise.resolve();

function renew() {
  renewing = renewing.then(async () => {
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("compared");
    const old = document.getElementById("compared"), kept = keep(old);
    old.replaceWith(fresh);
    adopt(fresh, kept);
    reveal(fresh);
    follow();
  }).catch(() => {}); // the next event asks again
}

adopt(document);
follow();
document.documentElement.dataset.live = "";
