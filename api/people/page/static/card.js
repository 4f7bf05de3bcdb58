// Shows times in the reader's time zone (UTC without this script), and copies a secret that is shown once.
const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

for (const time of document.querySelectorAll("time")) {
  if (time.dateTime) time.textContent = FORMAT.format(new Date(time.dateTime));
}
document.addEventListener("click", async ({ target }) => {
  const from = document.getElementById(target.dataset?.copy ?? "");
  if (!from) return;
  getSelection().selectAllChildren(from); // without a clipboard, the reader copies the selection
  await navigator.clipboard?.writeText(from.textContent);
  target.textContent = navigator.clipboard ? "Copied" : "Selected";
});
