// Where a drawing comes from: files that are chosen or dropped anywhere, and what is pasted.

const SVG = /^(<\?xml|<!--|<!DOCTYPE|<svg\b|<g\b|<path\b)/i;

// Reads a file to the byte: text where it is UTF-8, otherwise each byte as the Latin-1 character of its number.
export async function contentOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return { name: file.name, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { name: file.name, bytes: Array.from(bytes, (byte) => String.fromCharCode(byte)).join("") };
  }
}

// Returns a design's source: an SVG if the text is one, otherwise words.
export function fromPaste(text) {
  return SVG.test(text) ? { files: [{ name: "pasted.svg", text }] } : { text: { text } };
}

function isField(node) {
  return node instanceof HTMLElement && (node.isContentEditable || ["INPUT", "TEXTAREA"].includes(node.tagName));
}

// Calls `choose` with files that are dropped anywhere on the page, or with what is pasted outside a field.
export function watchDrops(choose) {
  const show = (isOver) => document.body.classList.toggle("dropping", isOver);
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    show(true);
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) show(false); });
  addEventListener("drop", (event) => {
    show(false);
    const dropped = [...(event.dataTransfer?.files || [])];
    if (dropped.length === 0) return;
    event.preventDefault();
    choose(dropped);
  });
  addEventListener("paste", (event) => {
    if (isField(event.target)) return;
    const pasted = [...(event.clipboardData?.files || [])];
    const text = event.clipboardData?.getData("text/plain").trim();
    if (pasted.length > 0) choose(pasted);
    else if (text) choose(text);
  });
}
