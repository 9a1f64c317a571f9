// Creates elements, and changes only what differs, so that a page that is redrawn ten times a second keeps its focus.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function shape(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function set(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// A table whose rows are identified by their first cell.
export class LiveTable {
  constructor(caption, columns) {
    const head = columns.map((column) => element("th", { scope: "col" }, column));
    this.rows = element("tbody");
    this.node = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      element("table", {}, element("caption", {}, caption),
        element("thead", {}, element("tr", {}, ...head)), this.rows));
  }

  show(rows) {
    while (this.rows.rows.length > rows.length) this.rows.deleteRow(-1);
    rows.forEach((cells, at) => this.#row(at, cells));
  }

  #row(at, cells) {
    let row = this.rows.rows[at];
    if (!row) {
      const first = element("th", { scope: "row" });
      row = element("tr", {}, first, ...cells.slice(1).map(() => element("td")));
      this.rows.append(row);
    }
    cells.forEach((cell, column) => {
      const { text, warns } = typeof cell === "object" ? cell : { text: cell, warns: false };
      say(row.cells[column], String(text));
      set(row.cells[column], "class", warns ? "warns" : "");
    });
  }
}

export function seconds(value) {
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${Math.round(value)} s`;
  return `${Math.round(value / 60)} minutes`;
}

// Formats the duration of a stop.
export function milliseconds(value) {
  return value < 1000 ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : seconds(value / 1000);
}

// Formats a quantity that may not have been read.
export function known(value, unit, digits) {
  return value === null ? "not read" : `${value.toFixed(digits)} ${unit}`;
}

export function moment(ms) {
  return ms ? new Date(ms).toLocaleString() : "not yet";
}
