// A button beside each text that is made to be pasted elsewhere: elements with `data-copy`, and the lines for a shell.

import { say } from './say.js';

const SHOWN_MS = 2_000;

export function offerCopies(within = document) {
  for (const text of within.querySelectorAll('[data-copy], .same-as pre')) {
    // A heading is its text alone.
    const beside = text.closest('h1') ?? text;
    if (beside.nextElementSibling?.matches('.copy')) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'plain copy';
    button.textContent = 'Copy';
    const name = text.getAttribute('aria-label');
    if (name) button.setAttribute('aria-label', `Copy: ${name}`);
    button.addEventListener('click', () => void copy(text, button));
    beside.after(button);
  }
}

async function copy(text, button) {
  const isCopied = await toClipboard(text);
  button.textContent = isCopied ? 'Copied' : 'Selected: press Ctrl+C';
  say(isCopied ? 'Copied' : 'Selected. Press Control C to copy.');
  setTimeout(() => (button.textContent = 'Copy'), SHOWN_MS);
}

/** Over plain http by an address there is no clipboard: then the text is selected, and copied in the old way if that works. */
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(text);
    return document.execCommand('copy');
  }
}
