// Buttons by which an operator commands, and what came of them.

import { command, door, session } from "./door.js";
import { byId, element, say, set } from "./elements.js";

// A button that sends a verb, one at a time, and says in `answer` what came of it.
export function verbButton(label, verb, answer) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", () => ask(button, verb, answer));
  return button;
}

async function ask(button, verb, answer) {
  if (button.getAttribute("aria-disabled") === "true") return;
  set(button, "aria-disabled", true);
  say(answer, `${button.textContent} …`);
  try {
    const told = await command(verb);
    say(answer, `${told.done ? "" : "Not done: "}${told.text}`);
  } catch (failure) {
    say(answer, `Not done: ${failure.message}`);
  }
  set(button, "aria-disabled", false);
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
