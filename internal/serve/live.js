// What the server sends replaces the parts of the page. It has escaped all that is from outside.
"use strict";
const events = new EventSource("events");
const state = document.getElementById("state");
events.addEventListener("parts", (e) => {
  state.textContent = "";
  for (const part of JSON.parse(e.data)) {
    const place = document.getElementById(part.id);
    if (place) place.innerHTML = part.html;
  }
});
events.addEventListener("over", () => {
  events.close();
  state.textContent = "The run is over.";
});
events.addEventListener("error", () => {
  state.textContent = events.readyState === EventSource.CLOSED ? "The connection is gone; this was the last. plimsoll serve shows what was kept of the run." : "The connection is gone; trying again … If the run was ended: plimsoll serve shows what was kept of it.";
});
