// The live page: takes what the stream tells, filters it, and shows the newest rows. Paused, it keeps as many as it would show.

import { createFilter } from './live-filter.js';
import { createRows } from './live-rows.js';
import { createStream } from './live-stream.js';

const STATES = {
  connecting: 'Connecting',
  listening: 'Listening',
  lost: 'The stream was lost, or too many listen with this token. Trying again.',
  ended: 'Your session has ended.',
};

const part = (id) => document.getElementById(id);

export function showLive(place) {
  const body = part('rows');
  const { rowOf, gapOf } = createRows({
    template: part('row'),
    meanings: JSON.parse(place.dataset.meanings),
  });
  const isWanted = createFilter(JSON.parse(place.dataset.filters));
  const rowsMax = Number(place.dataset.rows);
  let isPaused = false;
  let isDrawing = false;
  let queue = [];
  let dropped = { count: 0, since: undefined };
  place.hidden = false;

  function take(told) {
    if (told.kind === 'state') return showState(told.state);
    if (!isWanted(told)) return;
    queue.push(told);
    if (queue.length > rowsMax) drop(queue.shift());
    if (isPaused) part('waiting').textContent = `${queue.length + dropped.count} waiting`;
    else draw();
  }

  /** Rows that would leave the page in the same moment are no gap; those that nobody could see are one. */
  function drop({ item }) {
    if (!isPaused) return;
    dropped.since ??= item.received_at ?? item.published_at ?? item.since;
    dropped.count += 1;
  }

  /** Once a frame, however many came. */
  function draw() {
    if (isDrawing) return;
    isDrawing = true;
    requestAnimationFrame(() => {
      isDrawing = false;
      if (isPaused || queue.length === 0) return;
      const made = queue.map((told) => (told.kind === 'gap' ? gapOf(told.item) : rowOf(told)));
      queue = [];
      body.prepend(...made.toReversed());
      while (body.children.length > rowsMax) body.lastElementChild.remove();
      part('nothing').hidden = true;
    });
  }

  function pause() {
    isPaused = !isPaused;
    part('pause').setAttribute('aria-pressed', String(isPaused));
    part('pause').textContent = isPaused ? 'Resume' : 'Pause';
    part('waiting').textContent = '';
    if (isPaused) return;
    if (dropped.count > 0)
      queue.unshift({
        kind: 'gap',
        item: { because: 'paused', left_out: dropped.count, since: dropped.since },
      });
    dropped = { count: 0, since: undefined };
    draw();
  }

  function showState(state) {
    part('listening').textContent = STATES[state];
    if (state === 'ended') location.reload(); // leads to signing in, and back here
  }

  part('pause').addEventListener('click', pause);
  if (window.SharedWorker) shareStream(take, place.dataset.session);
  else ownStream(take);
}

/** One stream for all tabs. Another session has another worker, since it may see other sources. */
function shareStream(take, session) {
  const worker = new SharedWorker(new URL('live-worker.js', import.meta.url), {
    type: 'module',
    name: `live ${session}`,
  });
  worker.port.addEventListener('message', ({ data }) => take(data));
  worker.port.start();
  worker.port.postMessage('join');
  window.addEventListener('pagehide', () => worker.port.postMessage('leave'));
  window.addEventListener('pageshow', ({ persisted }) => persisted && worker.port.postMessage('join'));
}

/** Where tabs cannot share one, a hidden tab has none: so there are no more than the browser has connections. */
function ownStream(take) {
  const stream = createStream((told) => {
    take(
      told.item?.because === 'lost' && wasHidden
        ? { ...told, item: { ...told.item, because: 'hidden' } }
        : told,
    );
    if (told.kind === 'gap') wasHidden = false;
  });
  let wasHidden = false;
  const follow = () => {
    if (!document.hidden) return stream.open();
    wasHidden = true;
    stream.close();
  };
  document.addEventListener('visibilitychange', follow);
  follow();
}
