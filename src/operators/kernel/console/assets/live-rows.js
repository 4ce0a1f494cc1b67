// The rows of the live page. What senders wrote becomes text, and nothing else.

/** @param meanings of states: `{ accepted: 'good' }` */
export function createRows({ template, meanings }) {
  return { rowOf, gapOf };

  function rowOf({ kind, item }) {
    const row = template.content.firstElementChild.cloneNode(true);
    const [time, what, source, job, outcome, status, details] = row.children;
    const at = item.received_at ?? item.published_at;
    time.append(timeOf(at));
    const href =
      kind === 'delivery'
        ? `/console/deliveries/${encodeURIComponent(item.id)}`
        : addressOf('event', { id: item.event_id });
    what.append(link(href, kind));
    source.textContent = item.source;
    if (item.job_id)
      job.append(link(addressOf('job', { source: item.source, job_id: item.job_id }), item.job_id));
    outcome.append(stateOf(item.outcome ?? item.result));
    status.textContent = statusOf(item);
    details.append(detailsOf(item));
    if (item.replay_id) details.append(' · ', link(`/console/replays/${item.replay_id}`, 'replay'));
    return row;
  }

  function stateOf(word) {
    const shown = document.createElement('span');
    const meaning = Object.hasOwn(meanings, word) ? meanings[word] : undefined;
    if (meaning) shown.className = `state ${meaning}`;
    shown.textContent = word;
    return shown;
  }

  /** Where something is missing, and where it can be read. */
  function gapOf({ because, list, left_out: count, since, until }) {
    const row = template.content.firstElementChild.cloneNode(true);
    row.className = 'gap';
    const cell = row.firstElementChild;
    row.replaceChildren(cell);
    cell.colSpan = template.content.firstElementChild.children.length;
    cell.removeAttribute('data-head');
    cell.className = 'long';
    cell.append('Gap: ', REASONS[because]?.(count) ?? 'some are missing', ', from ', timeOf(since));
    if (until) cell.append(' to ', timeOf(until));
    cell.append('. The lists have them: ');
    for (const name of list ? [list] : ['deliveries', 'publications']) {
      cell.append(link(addressOf(name, { from: since, ...(until && { to: until }) }), name), ' ');
    }
    return row;
  }
}

const REASONS = {
  lost: () => 'the stream was not open',
  hidden: () => 'this tab was hidden',
  too_many: (count) => `at least ${count} more happened than a page can show`,
  too_slow: (count) => `${count} arrived faster than this browser could take them`,
  paused: (count) => `${count} arrived while the page was paused, more than it can keep`,
};

const END_OF_ID = /:(completed|failed|processing)(?::(\d+))?$/;

/** A publication has none of its own: its event's id ends with it. */
function statusOf({ status, progress_percentage: percent, event_id: id }) {
  if (status === undefined) {
    const [, said = '', reached] = END_OF_ID.exec(id) ?? [];
    return reached ? `${said} ${reached} %` : said;
  }
  return percent === null ? (status ?? '') : `${status ?? ''} ${percent} %`;
}

const addressOf = (page, query) => `/console/${page}?${new URLSearchParams(query)}`;

function link(href, text) {
  const made = document.createElement('a');
  made.href = href;
  made.textContent = text;
  return made;
}

function timeOf(at) {
  const time = document.createElement('time');
  time.dateTime = at;
  time.textContent = at.replace('T', ' ').replace(/(?:\.\d+)?Z$/, '');
  return time;
}

function detailsOf({ error_code: code, reason, detail, duration_ms: ms, queue }) {
  const parts = [code, reason, detail, ms !== undefined && `${ms} ms`, queue && `to queue ${queue}`];
  return parts.filter((part) => part !== null && part !== undefined && part !== false).join(' · ');
}
