// The stream of live events: opens it, opens it again where it was lost, and marks what was missed meanwhile. Used by the worker
// that all tabs share, or by a tab alone.

const STREAM = '/console/live/stream';
const PAGE = '/console/live';
const WAIT_FIRST_MS = 1_000;
const WAIT_MAX_MS = 15_000;

/** @param tell gets `{ kind: 'delivery' | 'publication' | 'gap' | 'state', … }` */
export function createStream(tell) {
  let stream;
  let retry;
  let lostAt;
  let waitMs = WAIT_FIRST_MS;
  let state = 'connecting';

  function change(next) {
    if (state === next) return;
    state = next;
    tell({ kind: 'state', state });
  }

  function open() {
    if (stream) return;
    clearTimeout(retry);
    stream = new EventSource(STREAM);
    stream.addEventListener('open', () => {
      waitMs = WAIT_FIRST_MS;
      if (lostAt)
        tell({ kind: 'gap', item: { because: 'lost', since: lostAt, until: new Date().toISOString() } });
      lostAt = undefined;
      change('listening');
    });
    for (const kind of ['delivery', 'publication', 'gap']) {
      stream.addEventListener(kind, ({ data }) => tell({ kind, item: JSON.parse(data) }));
    }
    stream.addEventListener('error', () => {
      close();
      change('lost');
      retry = setTimeout(tryAgain, waitMs);
      waitMs = Math.min(waitMs * 2, WAIT_MAX_MS);
    });
  }

  /** EventSource does not say why it failed. Where the session has ended, the page itself leads to signing in. */
  async function tryAgain() {
    const page = await fetch(PAGE, { method: 'HEAD', redirect: 'manual' }).catch(() => undefined);
    if (page?.type === 'opaqueredirect') change('ended');
    else open();
  }

  /** What happens from now on is missed, and marked when the stream is open again. */
  function close() {
    clearTimeout(retry);
    if (!stream) return;
    stream.close();
    stream = undefined;
    lostAt ??= new Date().toISOString();
  }

  return { open, close, state: () => state };
}
