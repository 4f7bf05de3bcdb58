// Times as the clock of their reader has them, which are UTC without this script; and what is shown once is copied.
const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

for (const time of document.querySelectorAll("time")) {
  if (time.dateTime) time.textContent = FORMAT.format(new Date(time.dateTime));
}
document.addEventListener("click", async ({ target }) => {
  const from = document.getElementById(target.dataset?.copy ?? "");
  if (!from) return;
  getSelection().selectAllChildren(from); // where the browser gives no clipboard, it can be copied from here
  await navigator.clipboard?.writeText(from.textContent);
  target.textContent = navigator.clipboard ? "Copied" : "Selected";
});
