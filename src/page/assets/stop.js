// The stop buttons. This script needs no other file of the page, no login and no stream; without it the buttons are plain forms.
"use strict";
(() => {
  const TRIES = 4;
  const RETRY_MS = 200;
  const answer = document.getElementById("stop-answer");

  // Only the name in the audit log depends on it.
  function secret() {
    try {
      return localStorage.getItem("steadyhand-secret") || "1";
    } catch (forbidden) {
      return "1";
    }
  }

  // Retries if the node was not reached: a stop that arrives twice is one stop.
  async function send(path) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetch(path, {
          method: "POST",
          cache: "no-store",
          headers: { "Steadyhand-Page": secret() },
        });
      } catch (lost) {
        if (attempt === TRIES) throw lost;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  const rounded = (ms) => `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;

  // Says how soon an arm heard the stop and stood; the title has the whole answer.
  function figures({ name, stop }) {
    const kept = stop.not_kept ? ` ${stop.not_kept}.` : "";
    if (stop.first_frame_ms === null) return `${name}: was not moving.${kept}`;
    return `${name}: first stop frame after ${rounded(stop.first_frame_ms)}, standing still after ${rounded(stop.standstill_ms)}.${kept}`;
  }

  async function stop(path, name) {
    const seconds = () => ((performance.now() - began) / 1000).toFixed(2);
    const began = performance.now();
    answer.className = "";
    answer.textContent = `${name} sent`;
    try {
      const response = await send(path);
      const reply = await response.json();
      if (!response.ok) throw new Error(reply.error);
      answer.className = reply.verified ? "good" : "bad";
      const verdict = reply.verified
        ? `standstill verified. ${reply.arms.map(figures).join(" ")}`
        : `STANDSTILL NOT VERIFIED. ${reply.words}.`;
      answer.textContent = `${name}: ${verdict} Answered after ${seconds()} s.`;
      answer.title = reply.words;
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
  // A key that is held down repeats; only the first press counts.
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.repeat) stop("/page/stop", "Stop");
  }, true);
})();
