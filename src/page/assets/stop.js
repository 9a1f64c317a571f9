// Stops. Needs no other file of the page, no login and no stream; without it the buttons are plain forms.
"use strict";
(() => {
  const TRIES = 4;
  const AGAIN_MS = 200;
  const answer = document.getElementById("stop-answer");

  // The name in the audit log depends on it, and nothing else.
  function secret() {
    try {
      return localStorage.getItem("steadyhand-secret") || "1";
    } catch (forbidden) {
      return "1";
    }
  }

  // Sent again where the node was not reached: a stop that is heard twice is one stop.
  async function ask(path) {
    for (let tried = 1; ; tried += 1) {
      try {
        return await fetch(path, {
          method: "POST",
          cache: "no-store",
          headers: { "Steadyhand-Page": secret() },
        });
      } catch (lost) {
        if (tried === TRIES) throw lost;
        await new Promise((again) => setTimeout(again, AGAIN_MS));
      }
    }
  }

  async function stop(path, name) {
    const seconds = () => ((performance.now() - began) / 1000).toFixed(2);
    const began = performance.now();
    answer.className = "";
    answer.textContent = `${name} sent`;
    try {
      const response = await ask(path);
      const told = await response.json();
      if (!response.ok) throw new Error(told.error);
      answer.className = told.verified ? "good" : "bad";
      const verdict = told.verified ? "standstill verified" : "STANDSTILL NOT VERIFIED";
      answer.textContent = `${name}: ${verdict}. ${told.words}. Answered after ${seconds()} s.`;
    } catch (failure) {
      answer.className = "bad";
      answer.textContent = `${name} WAS NOT CONFIRMED after ${seconds()} s (${failure.message}): look at the arm, cut its power if it moves.`;
    }
  }

  function wire(form, path, name) {
    document.getElementById(form).addEventListener("submit", (event) => {
      event.preventDefault();
      stop(path, name);
    });
  }

  wire("stop-form", "/page/stop", "Stop");
  wire("estop-form", "/page/estop", "Emergency stop");
  // A press that is held repeats: the first is enough.
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.repeat) stop("/page/stop", "Stop");
  }, true);
})();
