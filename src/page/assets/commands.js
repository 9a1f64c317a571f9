// Buttons that send an operator's commands, and their outcome.

import { tell } from "./answers.js";
import { command, session } from "./door.js";
import { element, set } from "./elements.js";

// Sends a verb and returns the reply; throws the reply's text if the verb was not carried out.
export async function runVerb(verb) {
  const reply = await command(verb);
  if (!reply.done) throw new Error(reply.text);
  return reply;
}

// Sends a verb and shows the outcome in `answer`; returns whether it was carried out.
export async function tryVerb(verb, answer) {
  try {
    const reply = await command(verb);
    tell(answer, `${reply.done ? "" : "Not done: "}${reply.text}`, !reply.done);
    return reply.done;
  } catch (failure) {
    tell(answer, `Not done: ${failure.message}`, true);
    return false;
  }
}

// Creates a button that sends a verb, one at a time, and shows the outcome in `answer`. `after` is called with whether it was
// carried out. A verb that depends on the page's fields is a function.
export function verbButton(label, verb, answer, after = () => {}) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    set(button, "aria-disabled", true);
    tell(answer, `${button.textContent} …`);
    const done = await tryVerb(typeof verb === "function" ? verb() : verb, answer);
    set(button, "aria-disabled", false);
    after(done);
  });
  return button;
}

// Runs one task at a time: a press during another task does nothing. A failure is shown in `answer`.
export function oneAtATime(answer) {
  let busy = false;
  return async (work) => {
    if (busy) return;
    busy = true;
    try {
      await work();
    } catch (failure) {
      tell(answer, `Not done: ${failure.message}`, true);
    }
    busy = false;
  };
}

export function isOperator() {
  return session()?.role === "operator";
}
