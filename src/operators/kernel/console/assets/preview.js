// A form whose address shows a preview shows it while it is filled. Without this script its button does the same.

const PAUSE_MS = 400;

for (const form of document.querySelectorAll('form[data-preview]')) {
  let timer;
  let asked = 0;
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE_MS);
  });

  async function show() {
    const mine = ++asked;
    const given = [...new FormData(form)].filter(([, value]) => value !== '');
    const address = `${form.getAttribute('action')}?${new URLSearchParams(given)}`;
    const response = await fetch(address).catch(() => undefined);
    const text = await response?.text().catch(() => undefined);
    // Of two answers that cross, the later question counts.
    if (text === undefined || mine !== asked) return;
    const page = new DOMParser().parseFromString(text, 'text/html');
    const shown = page.getElementById(form.dataset.preview);
    if (shown === null) return location.assign(address);
    document.getElementById(form.dataset.preview).replaceChildren(...shown.childNodes);
    document.querySelector('.same-as')?.remove();
    const same = page.querySelector('.same-as');
    if (same !== null) document.querySelector('main').append(same);
    history.replaceState(null, '', address);
  }
}
