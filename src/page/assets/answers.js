// Answers beside the buttons that were pressed. An answer vanishes once the arms' state is no longer the one it was given in.

// A command's own effect on the state arrives within this time of its answer.
const SETTLES_MS = 1500;

const told = new Map();
let stamp = "";

export function tell(node, text, isBad = false) {
  if (node.textContent !== text) node.textContent = text;
  node.classList.toggle("bad", isBad);
  if (text === "") told.delete(node);
  else told.set(node, { at: performance.now(), stamp });
}

function stampOf(state) {
  const arms = state.arms.map((arm) => [arm.condition.kind, arm.condition.cause, arm.enabled, arm.job?.id, arm.job?.state]);
  return JSON.stringify([arms, state.waiting, state.pens.map((pen) => [pen.job, pen.pen])]);
}

export function answersLive(state) {
  stamp = stampOf(state);
  const now = performance.now();
  for (const [node, answer] of told) {
    if (answer.stamp === stamp) continue;
    // Its own effect is one change; another one ends it.
    if (!answer.hasSettled && now - answer.at < SETTLES_MS) Object.assign(answer, { stamp, hasSettled: true });
    else tell(node, "");
  }
}
