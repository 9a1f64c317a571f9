// Buttons by which an operator commands, and what came of them.

import { command, door, session } from "./door.js";
import { byId, element, say, set } from "./elements.js";

// Sends a verb; what is not done is thrown in its words.
export async function asked(verb) {
  const told = await command(verb);
  if (!told.done) throw new Error(told.text);
  return told;
}

// Sends a verb and says in `answer` what came of it; returns whether it was done.
export async function tell(verb, answer) {
  try {
    const told = await command(verb);
    say(answer, `${told.done ? "" : "Not done: "}${told.text}`);
    return told.done;
  } catch (failure) {
    say(answer, `Not done: ${failure.message}`);
    return false;
  }
}

// A button that sends a verb, one at a time, and says in `answer` what came of it; `after` is told whether it was done. A verb that
// depends on the page's fields is a function.
export function verbButton(label, verb, answer, after = () => {}) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    set(button, "aria-disabled", true);
    say(answer, `${button.textContent} …`);
    const done = await tell(typeof verb === "function" ? verb() : verb, answer);
    set(button, "aria-disabled", false);
    after(done);
  });
  return button;
}

// Lets one piece of work through at a time: a press while another is worked on does nothing. What fails is said in `answer`.
export function oneAtATime(answer) {
  let busy = false;
  return async (work) => {
    if (busy) return;
    busy = true;
    try {
      await work();
    } catch (failure) {
      say(answer, `Not done: ${failure.message}`);
    }
    busy = false;
  };
}

export function isOperator() {
  return session()?.role === "operator";
}

export function beginCommands() {
  const answer = byId("command-answer");
  byId("commands").append(
    verbButton("Hold at the stroke's end", { verb: "hold", now: false }, answer),
    verbButton("Hold now", { verb: "hold", now: true }, answer),
    verbButton("Resume", { verb: "resume" }, answer),
    verbButton("Clear emergency stop", { verb: "clear" }, answer));
  door.addEventListener("session", () => { byId("commands").hidden = !isOperator(); });
}
