// A form that acts is sent once: its button rests after it was pressed. Sending it twice would do no harm, since it carries a
// key, but a button that does nothing visible invites a second press.

/** A form that saves a file leaves the page as it is, so its button comes back. */
const REST_MS = 5_000;

export function guardForms() {
  document.addEventListener('submit', ({ target: form, submitter, defaultPrevented }) => {
    if (form.method !== 'post' || defaultPrevented) return;
    const button = submitter ?? form.querySelector('button');
    if (!button) return;
    // Afterwards, since the name of a disabled button is not sent.
    setTimeout(() => (button.disabled = true));
    setTimeout(() => (button.disabled = false), REST_MS);
  });
  // Back to a page that the browser has kept.
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted) for (const button of document.querySelectorAll('button:disabled')) button.disabled = false;
  });
}
