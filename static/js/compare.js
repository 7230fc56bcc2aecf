// The compare page: what the layers earned is asked for once the rest stands, because it may have to be run.
import { adopt } from "./plots.js";
import { reveal } from "./page.js";

adopt(document);

const room = document.querySelector("#layers[data-from]");
if (room) {
  fetch(room.dataset.from, { headers: { Accept: "text/html" } })
    .then((answer) => (answer.ok ? answer.text() : ""))
    .catch(() => "")
    .then((text) => {
      const fresh = new DOMParser().parseFromString(text, "text/html");
      room.replaceChildren(...(text ? fresh.body.childNodes : []));
      room.removeAttribute("aria-busy");
      reveal(room);
    });
}
