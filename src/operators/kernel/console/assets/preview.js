// A form whose address shows a preview shows it while it is filled. Without this script its button does the same. A form that is too
// long for an address is sent.

const PAUSE_MS = 400;

for (const form of document.querySelectorAll('form[data-preview]')) {
  let timer;
  let asked = 0;
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE_MS);
  });

  /** The fields that the answer marks, and no others. */
  function mark(answered) {
    for (const told of form.querySelectorAll('.fault')) told.remove();
    for (const field of form.querySelectorAll('[aria-invalid]')) {
      field.removeAttribute('aria-invalid');
      field.removeAttribute('aria-describedby');
    }
    for (const { name, nextElementSibling: told } of answered?.querySelectorAll('[aria-invalid]') ?? []) {
      const field = form.elements[name];
      field.setAttribute('aria-invalid', 'true');
      field.setAttribute('aria-describedby', told.id);
      field.after(' ', told);
    }
  }

  async function show() {
    const mine = ++asked;
    const given = [...new FormData(form)].filter(([, value]) => value !== '');
    const fields = new URLSearchParams(given);
    const action = form.getAttribute('action');
    const isSent = form.method === 'post';
    const address = isSent ? action : `${action}?${fields}`;
    const response = await fetch(address, isSent ? { method: 'POST', body: fields } : {}).catch(
      () => undefined,
    );
    const text = await response?.text().catch(() => undefined);
    // Of two answers that cross, the later question counts.
    if (text === undefined || mine !== asked) return;
    const page = new DOMParser().parseFromString(text, 'text/html');
    const shown = page.getElementById(form.dataset.preview);
    if (shown === null) return isSent ? form.submit() : location.assign(address);
    document.getElementById(form.dataset.preview).replaceChildren(...shown.childNodes);
    mark(page.querySelector('form[data-preview]'));
    document.querySelector('.same-as')?.remove();
    const same = page.querySelector('.same-as');
    if (same !== null) document.querySelector('main').append(same);
    if (!isSent) history.replaceState(null, '', address);
  }
}
