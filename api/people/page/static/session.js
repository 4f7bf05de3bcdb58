// Handles the end of the session. A person who has typed something logs in in another tab, and presses the button again.
import { h } from "./dom.js";

const PAUSE = 2000;
let renewal = null;

/** Resolves when there is a session again. Without an open dialog the page loads again, and asks for a login. */
export function loggedOut() {
  renewal ??= renew().finally(() => {
    renewal = null;
  });
  return renewal;
}

async function renew() {
  const dialog = document.querySelector("dialog[open]");
  if (!dialog) {
    location.reload();
    return new Promise(() => {});
  }
  const notice = h("p", { class: "why warn", role: "alert" }, "Your session is over. What you typed stays here: ",
    h("a", { href: "/login", target: "_blank", rel: "noopener" }, "Log in"), " in another tab, then continue.");
  dialog.prepend(notice);
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (!dialog.open) location.reload();
    const form = await formToken();
    if (!form) continue;
    for (const input of document.querySelectorAll("[name=form_token]")) input.value = form;
    return notice.remove();
  }
}

/** The form token of the new session; null until there is one. For another person the page loads again. */
async function formToken() {
  const answer = await fetch(location.href, { redirect: "manual" }).catch(() => null);
  if (!answer?.ok) return null;
  const text = await answer.text();
  const [, person] = text.match(/ data-token="([^"]*)"/) ?? [];
  if (person !== document.body.dataset.token) location.reload();
  const [, form] = text.match(/ name="form_token" value="([^"]*)"/) ?? [];
  return form ?? null;
}
