// Times as the clock of who reads them has them; without this script they are UTC.
const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

for (const time of document.querySelectorAll("time")) time.textContent = FORMAT.format(new Date(time.dateTime));
