// A box in the head of a list ticks all rows of the page. Without this script each row is ticked by itself.

import { say } from './say.js';

export function offerAll() {
  for (const table of document.querySelectorAll('form table.list')) {
    const boxes = [...table.querySelectorAll('tbody input[type="checkbox"]')];
    if (boxes.length > 1) offer(table, boxes);
  }
}

function offer(table, boxes) {
  const all = document.createElement('input');
  all.type = 'checkbox';
  all.setAttribute('aria-label', 'Select all on this page');
  all.autocomplete = 'off';
  const head = table.tHead.rows[0].cells[boxes[0].closest('td').cellIndex];
  // On a narrow screen a list has no head that can be seen.
  if (table.tHead.offsetHeight > 1) head.replaceChildren(all);
  else table.closest('form').querySelector('p.actions')?.prepend(labelled(all), ' ');

  const show = () => {
    const count = boxes.filter((box) => box.checked).length;
    all.checked = count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
    return count;
  };
  all.addEventListener('change', () => {
    for (const box of boxes) box.checked = all.checked;
    say(`${show()} selected`);
  });
  table.addEventListener('change', ({ target }) => target !== all && show());
  // The browser keeps ticks over a reload and over going back.
  window.addEventListener('pageshow', show);
  show();
}

function labelled(box) {
  const label = document.createElement('label');
  label.append(box, ' all on this page');
  return label;
}
