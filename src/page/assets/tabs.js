// The tabs beside the paper. The chosen one stays chosen; only a press changes it.

import { byId } from "./elements.js";

const NAMES = ["draw", "jobs", "arm", "setup"];

function current() {
  return NAMES.find((name) => !byId(name).hidden);
}

// Opens a tab; with `focuses`, brings its first control under the hand.
export function openTab(name, focuses = false) {
  for (const one of NAMES) {
    const isChosen = one === name;
    byId(one).hidden = !isChosen;
    byId(`tab-${one}`).setAttribute("aria-selected", String(isChosen));
    byId(`tab-${one}`).tabIndex = isChosen ? 0 : -1;
  }
  dispatchEvent(new CustomEvent("tab", { detail: name }));
  if (!focuses) return;
  const login = byId("login");
  const part = name === "draw" && !login.hidden ? login : byId(name);
  const control = [...part.querySelectorAll("input, textarea, select, button, summary")].find((node) => node.getClientRects().length > 0);
  if (control) control.focus();
  else byId(`tab-${name}`).focus();
}

export function beginTabs() {
  for (const name of NAMES) byId(`tab-${name}`).addEventListener("click", () => openTab(name));
  byId("tabs").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = NAMES[(NAMES.indexOf(current()) + step + NAMES.length) % NAMES.length];
    openTab(next);
    byId(`tab-${next}`).focus();
  });
}
