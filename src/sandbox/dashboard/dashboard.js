// What makes the dashboard's pages livelier. All of them work without it: it loads what is under way again, copies a value,
// sends a form once, and tells the local time.

const POLL_MS = 1000;

/** Takes the parts that are marked as live, and the rest of what changes with them, from the page as it is now. */
async function refresh() {
  const response = await fetch(location.href, { headers: { Accept: 'text/html' } });
  // The session has ended: show where it leads.
  if (response.redirected || !response.ok) return location.reload();
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const part of document.querySelectorAll('main > section[id]')) {
    const now = page.getElementById(part.id);
    if (now === null || part.contains(document.activeElement)) continue;
    part.replaceWith(document.adoptNode(now));
  }
  const said = page.querySelector('[data-said]')?.dataset.said ?? '';
  const status = document.querySelector('[data-said]');
  if (status !== null && status.textContent !== said) status.textContent = said;
  tellLocalTimes();
}

async function follow() {
  try {
    if (!document.hidden) await refresh();
  } catch {
    // The sandbox does not answer now. The next round asks again.
  }
  if (document.querySelector('[data-live="on"]') !== null) setTimeout(follow, POLL_MS);
}

function tellLocalTimes() {
  for (const time of document.querySelectorAll('time:not([title])')) {
    time.title = new Date(time.dateTime).toLocaleString(undefined, { timeZoneName: 'short' });
  }
}

/** The clipboard is missing on plain http by a name: then the value is selected, to be copied by hand. */
async function copy(button) {
  const value = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(value.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(value);
    button.textContent = 'Selected: copy it with the keyboard';
  }
}

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = false;
  button.addEventListener('click', () => void copy(button));
}

document.addEventListener('submit', ({ target }) => {
  // Later: a disabled button would not be sent.
  setTimeout(() => {
    for (const button of target.querySelectorAll('button')) button.disabled = true;
  });
});

// Back in the history shows the page as it was left.
addEventListener('pageshow', () => {
  for (const button of document.querySelectorAll('button')) button.disabled = false;
});

document.documentElement.classList.add('live');
tellLocalTimes();
if (document.querySelector('[data-live="on"]') !== null) setTimeout(follow, POLL_MS);
