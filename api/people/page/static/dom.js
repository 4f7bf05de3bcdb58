// Elements made from values, and what is shown brought to what was made: nodes stay, so focus and selection do too.

// as domain/text/storable.py has them: a browser obeys those that turn the direction of writing, and shows none of the others
const UNFIT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** The attributes that are read; what is typed and sent stays as it is. */
const SHOWN = new Set(["title", "aria-label"]);

/** A text in which such a character is shown as what it is, as [U+202E]. */
const legible = (text) => text.replace(UNFIT, (character) => `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

/** An element. Children may be elements, texts, null, or lists of them. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same of a drawing. */
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

/** Makes the children of `shown` those of `made`, by their `data-key` where they have one. */
export function morphChildren(shown, made) {
  const focused = document.activeElement;
  children(shown, made);
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

/** Makes one element what another is, and keeps its place. */
export function morph(shown, made) {
  for (const { name } of [...shown.attributes]) {
    // whether it is open is what its reader has chosen
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
    const found = same(keyed, place, child);
    if (!found) {
      shown.insertBefore(child, place);
      continue;
    }
    if (found === place) place = place.nextSibling;
    else shown.insertBefore(found, place);
    if (child.nodeType === Node.TEXT_NODE) {
      if (found.nodeValue !== child.nodeValue) found.nodeValue = child.nodeValue;
    } else {
      morph(found, child);
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
    const found = keyed.get(key);
    return found?.nodeName === child.nodeName ? found : null;
  }
  return place && place.nodeName === child.nodeName && !place.dataset?.key ? place : null;
}
