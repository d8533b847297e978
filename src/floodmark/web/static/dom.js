// Builds elements. Text is always text: nothing here or elsewhere parses markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "hidden" || name === "disabled" || name === "selected") element[name] = true;
    else element.setAttribute(name, String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const at = (id) => document.getElementById(id);
export const put = (where, ...children) => { where.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false)); return where; };
export const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };

// What a reader has opened, scrolled and focused stays so while the facts in it are drawn anew.
export function keeping(where, make) {
  const open = new Set([...where.querySelectorAll("details[open] > summary")].map((one) => one.textContent));
  const scrolled = new Map([...where.querySelectorAll(".table-frame")].map((one) => [one.getAttribute("aria-label"), one.scrollTop]));
  const active = where.contains(document.activeElement) ? document.activeElement : null;
  const name = active && label(active);
  const index = active && focusable(where).indexOf(active);
  make();
  for (const summary of where.querySelectorAll("details > summary")) if (open.has(summary.textContent)) summary.parentElement.open = true;
  for (const one of where.querySelectorAll(".table-frame")) { const top = scrolled.get(one.getAttribute("aria-label")); if (top) one.scrollTop = top; }
  if (!active || active === document.activeElement) return;
  const found = focusable(where);
  const again = active.isConnected ? active : found.find((one) => label(one) === name) || found[index];
  if (again) again.focus({ preventScroll: true });
}

const focusable = (where) => [...where.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
const label = (one) => `${one.tagName} ${one.getAttribute("href") || one.getAttribute("aria-label") || one.textContent}`;

export function copyButton(text) {
  return h("button", { type: "button", class: "copy", onclick: (event) => copy(event.currentTarget, text) }, "Copy");
}

export async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
}
