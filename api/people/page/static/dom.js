// Makes elements from values, and updates shown elements to match them: nodes stay, and so do focus and selection.

// the list of domain/text/storable.py: some of them turn the direction of writing, the others are invisible
const UNFIT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** The attributes that people read; typed and sent values stay as they are. */
const SHOWN = new Set(["title", "aria-label"]);

/** The text with each such character by its code, such as [U+202E]. */
const legible = (text) => text.replace(UNFIT, (character) => `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

/** An element. Children may be elements, texts, null, or lists of them. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An element of a drawing (SVG). */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "place") {
      for (const [property, length] of Object.entries(value)) element.style.setProperty(property, length);
    } else {
      element.setAttribute(key, value === true ? "" : SHOWN.has(key) ? legible(String(value)) : String(value));
    }
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== "").map((child) => (typeof child === "string" ? legible(child) : child)));
  return element;
}

/** Updates the children of `shown` to those of `made`, matched by `data-key` where they have one. */
export function morphChildren(shown, made) {
  const focused = document.activeElement;
  children(shown, made);
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

/** Updates one element to match another, at its place. */
export function morph(shown, made) {
  for (const { name } of [...shown.attributes]) {
    // the reader has opened or closed it
    if (name !== "open" && !made.hasAttribute(name)) shown.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (shown.getAttribute(name) === value) continue;
    // the policy of the page forbids the attribute, not the property
    if (name === "style") shown.style.cssText = value;
    else shown.setAttribute(name, value);
  }
  children(shown, made);
}

function children(shown, made) {
  const keyed = new Map();
  for (const child of shown.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let place = shown.firstChild;
  for (const child of [...made.childNodes]) {
    const node = same(keyed, place, child);
    if (!node) {
      shown.insertBefore(child, place);
      continue;
    }
    if (node === place) place = place.nextSibling;
    else shown.insertBefore(node, place);
    if (child.nodeType === Node.TEXT_NODE) {
      if (node.nodeValue !== child.nodeValue) node.nodeValue = child.nodeValue;
    } else {
      morph(node, child);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function same(keyed, place, child) {
  const key = child.dataset?.key;
  if (key) {
    const node = keyed.get(key);
    return node?.nodeName === child.nodeName ? node : null;
  }
  return place && place.nodeName === child.nodeName && !place.dataset?.key ? place : null;
}
