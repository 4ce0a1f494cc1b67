// Keys: `/` reaches the search box, `?` opens the help, `j` and `k` go through the rows of a list, Enter opens the row. They do
// nothing while somebody types, and none with Ctrl, Alt or Meta, which belong to the browser.

const KEYS = [
  ['/', 'Search'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['?', 'Show this help'],
  ['Esc', 'Close this help'],
];
const TYPED_INTO = 'input:not([type="checkbox"], [type="radio"]), select, textarea';

export function watchKeys() {
  const help = addHelp();
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    const act = ACTIONS[event.key];
    if (event.key === '?') help.showModal();
    else if (!act?.()) return;
    event.preventDefault();
  });
}

const isTyping = (target) => target.isContentEditable || target.matches?.(TYPED_INTO);

/** Each returns whether it did something. */
const ACTIONS = { '/': reachSearch, j: () => go(1), k: () => go(-1), Enter: openRow };

function reachSearch() {
  const box = document.querySelector('[data-key="/"]');
  box?.focus();
  box?.select();
  return Boolean(box);
}

const rows = () =>
  [...document.querySelectorAll('main table.list tbody tr:not(.gap)')].filter((row) => row.offsetParent);
const currentRow = () => document.querySelector('main tr.current');

/** The row's first link gets the focus, so that a screen reader reads it. */
function go(step) {
  const all = rows();
  const current = currentRow();
  const next = all[current ? all.indexOf(current) + step : 0];
  if (!next) return all.length > 0;
  current?.classList.remove('current');
  next.classList.add('current');
  const first = linkOf(next) ?? next;
  if (first === next) next.tabIndex = -1;
  first.focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
  return true;
}

const linkOf = (row) => row.querySelector('a[href]');

/** A link or button that has the focus does what it does. */
function openRow() {
  if (document.activeElement?.matches('a, button, summary, input')) return false;
  const link = currentRow() && linkOf(currentRow());
  link?.click();
  return Boolean(link);
}

/** The dialog, and a button that opens it for those who do not know the key. */
function addHelp() {
  const help = document.createElement('dialog');
  help.className = 'keys';
  help.setAttribute('aria-labelledby', 'keys-title');
  const title = document.createElement('h2');
  title.id = 'keys-title';
  title.textContent = 'Keyboard';
  const list = document.createElement('dl');
  list.className = 'facts';
  for (const [key, meaning] of KEYS) {
    const term = document.createElement('dt');
    const name = document.createElement('kbd');
    const detail = document.createElement('dd');
    name.textContent = key;
    detail.textContent = meaning;
    term.append(name);
    list.append(term, detail);
  }
  const close = document.createElement('button');
  close.textContent = 'Close';
  close.addEventListener('click', () => help.close());
  help.append(title, list, close);
  document.body.append(help);
  const open = document.createElement('button');
  open.type = 'button';
  open.className = 'plain keys-button';
  open.textContent = 'Keyboard';
  open.addEventListener('click', () => help.showModal());
  document.querySelector('.page > nav')?.append(open);
  return help;
}
