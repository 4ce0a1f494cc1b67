// Loads a page again that says so (`data-refresh`, in seconds), while somebody looks at it. Nothing is replaced under the hands
// of somebody who types, selects or has changed a form, and the focus, the scroll and what is unfolded stay as they are.

import { offerCopies } from './copy.js';

export function refreshItself() {
  const main = document.querySelector('main[data-refresh]');
  if (!main) return;
  const everyMs = Number(main.dataset.refresh) * 1_000;
  let isLoading = false;
  const rounds = setInterval(() => {
    // With a slow server, a second answer would come into the swap of the first, or after the last state.
    if (isLoading) return;
    isLoading = true;
    void refresh(main, () => clearInterval(rounds)).finally(() => {
      isLoading = false;
    });
  }, everyMs);
}

async function refresh(main, end) {
  if (document.hidden || isBusy(main)) return;
  const answer = await load();
  if (!answer || document.hidden || isBusy(main)) return;
  const page = new DOMParser().parseFromString(answer, 'text/html');
  const fresh = page.querySelector('main');
  if (!fresh) return;
  // What the page told of is over: this is its last state.
  if (!fresh.hasAttribute('data-refresh')) end();
  keepUnfolded(main, fresh);
  const focused = placeOf(document.activeElement, main);
  const current = main.querySelector('tr.current');
  const row = current && rowsOf(main).indexOf(current);
  main.replaceChildren(...fresh.childNodes);
  document.title = page.title;
  offerCopies(main);
  if (row !== null) rowsOf(main)[row]?.classList.add('current');
  focused?.()?.focus({ preventScroll: true });
}

/** Undefined where the page could not be had: the next round tries again. */
async function load() {
  try {
    const answer = await fetch(location.href, { redirect: 'manual' });
    // A session that has ended leads to signing in.
    if (answer.type === 'opaqueredirect') location.reload();
    return answer.ok ? await answer.text() : undefined;
  } catch {
    return undefined;
  }
}

function isBusy(main) {
  if (!getSelection().isCollapsed || document.querySelector('dialog[open]')) return true;
  const focused = document.activeElement;
  if (main.contains(focused) && focused.matches('input, select, textarea')) return true;
  return [...main.querySelectorAll('input, select, textarea')].some(isChanged);
}

function isChanged(field) {
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  if (field.options)
    return (
      [...field.options].some((option) => option.selected !== option.defaultSelected) &&
      field.selectedIndex > 0
    );
  return field.value !== field.defaultValue;
}

function keepUnfolded(main, fresh) {
  const folds = [...main.querySelectorAll('details')];
  for (const [index, fold] of fresh.querySelectorAll('details').entries())
    fold.open = folds[index]?.open ?? false;
}

const rowsOf = (main) => [...main.querySelectorAll('tbody tr')];

/** @returns a function that finds the same element after the swap: by its id, its address, or its place among its kind */
function placeOf(element, main) {
  if (element === main || !main.contains(element)) return undefined;
  const { id, tagName } = element;
  if (id) return () => document.getElementById(id);
  const href = element.getAttribute('href');
  const alike = () =>
    [...main.querySelectorAll(tagName)].filter((each) => each.getAttribute('href') === href);
  const index = alike().indexOf(element);
  return () => alike()[index];
}
