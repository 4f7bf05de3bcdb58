// A link that logs in once. Its secret is in the fragment, which only this form sends, and no link of another site.
const secret = new URLSearchParams(location.hash.slice(1)).get("link");
const input = document.querySelector("[name=link]");

if (secret) {
  history.replaceState(null, "", location.pathname + location.search);
  if (input.dataset.obeyed) {
    input.value = secret;
    input.form.submit();
  } else {
    document.getElementById("foreign").hidden = false;
  }
}
