// Deliveries and publications as they happen, on all replicas: polls the ledger for new rows every second, once for all
// listeners, and only while there are some. Rows beyond the limit of a poll are left out and counted: the lists are the
// record.

import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../../base/errors.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { createNewRows, type NewRows, type RowKey } from '../kernel/list/new-rows.queries.ts';

/** How the rows of both lists are read by their keys. */
export type LiveReaders<Delivery, Publication> = {
  readonly deliveries: (keys: readonly RowKey[]) => Promise<readonly Delivery[]>;
  readonly publications: (keys: readonly RowKey[]) => Promise<readonly Publication[]>;
};

const LISTS = ['deliveries', 'publications'] as const;

export type LeftOut = {
  readonly list: (typeof LISTS)[number];
  /** A lower bound. */
  readonly count: number;
  /** The time of the first of them. */
  readonly since: string;
};

/** New rows of one poll, or a portion of them. Each list is in the order of its time. */
export type LiveRows<Delivery, Publication> = {
  readonly deliveries: readonly Delivery[];
  readonly publications: readonly Publication[];
  readonly leftOut: readonly LeftOut[];
};

export type Live<Delivery, Publication> = {
  /**
   * Calls `listener` with the rows that are committed from now on. Resolves once none will be missed.
   * @returns a function that ends it. Safe to call twice.
   * @throws the driver's error if the ledger cannot be read now
   */
  readonly listen: (listener: (rows: LiveRows<Delivery, Publication>) => void) => Promise<() => void>;
  /** Ends the polls. Safe to call twice. */
  readonly close: () => Promise<void>;
};

const POLL_INTERVAL_MS = 1_000;
/** Of each list: more than a person can follow, and not too many for a fast program. */
const ROWS_PER_POLL = 1_000;
/** Some 30 KB as text. */
const PORTION_ROWS = 50;

export function createLive<Delivery, Publication>(options: {
  connection: DatabaseConnection;
  readers: LiveReaders<Delivery, Publication>;
  /** Longer than any statement that adds rows takes to commit. */
  lateMs: number;
  log: Logger;
}): Live<Delivery, Publication> {
  const { connection, readers, lateMs, log } = options;
  type Listener = (rows: LiveRows<Delivery, Publication>) => void;
  type Both = { readonly deliveries: NewRows; readonly publications: NewRows };
  type Watch = { readonly ready: Promise<unknown>; readonly end: () => void; readonly ended: Promise<void> };
  const listeners = new Set<Listener>();
  let watch: Watch | undefined;

  function begin(): Watch {
    const ending = new AbortController();
    const newRows = {
      deliveries: createNewRows({
        connection,
        of: { table: 'deliveries', time: 'received_at', bySource: true },
        lateMs,
        rowsMax: ROWS_PER_POLL,
      }),
      publications: createNewRows({
        connection,
        of: {
          table: 'publications',
          time: 'published_at',
          packed: { table: 'publication_batches', array: 'durations_ms' },
        },
        lateMs,
        rowsMax: ROWS_PER_POLL,
      }),
    };
    const ready = prime(newRows);
    const ended = ready.then(
      () => run(newRows, ending.signal),
      () => {}, // `listen` throws it
    );
    return { ready, end: () => ending.abort(), ended };
  }

  /**
   * Publications first: so a publication is never sent in an earlier poll than its delivery. If one list cannot be read, the
   * rows of the other are returned all the same, since no later poll finds them again.
   */
  async function poll(
    newRows: Both,
  ): Promise<LiveRows<Delivery, Publication> & { errors: readonly unknown[] }> {
    const [publications] = await Promise.allSettled([newRows.publications.poll(readers.publications)]);
    const [deliveries] = await Promise.allSettled([newRows.deliveries.poll(readers.deliveries)]);
    const found = { deliveries, publications };
    return {
      deliveries: deliveries.status === 'fulfilled' ? deliveries.value.rows : [],
      publications: publications.status === 'fulfilled' ? publications.value.rows : [],
      leftOut: LISTS.flatMap((list) => {
        const result = found[list];
        if (result.status === 'rejected' || result.value.since === undefined) return [];
        return [{ list, count: result.value.leftOut, since: result.value.since }];
      }),
      errors: LISTS.flatMap((list) => (found[list].status === 'rejected' ? [found[list].reason] : [])),
    };
  }

  async function prime(newRows: Both): Promise<void> {
    const { errors } = await poll(newRows);
    if (errors.length > 0) throw errors[0];
  }

  async function run(newRows: Both, signal: AbortSignal): Promise<void> {
    let isFailing = false;
    while (await pause(signal)) {
      const { errors, ...found } = await poll(newRows);
      if (errors.length > 0 && !isFailing) {
        log.warn({ err: describeError(errors[0]) }, 'nothing new can be read for those who listen');
      }
      isFailing = errors.length > 0; // the next poll that works finds the rows of the failed ones
      if (!signal.aborted) await send(found); // after an abort, new listeners have a watch of their own
    }
  }

  /** In portions that fit in a connection's buffer, so that a listener who reads as fast as rows come loses none. */
  async function send({ deliveries, publications, leftOut }: LiveRows<Delivery, Publication>): Promise<void> {
    const rows = Math.max(deliveries.length, publications.length, leftOut.length);
    for (let from = 0; from < rows; from += PORTION_ROWS) {
      const portion = {
        deliveries: deliveries.slice(from, from + PORTION_ROWS),
        publications: publications.slice(from, from + PORTION_ROWS),
        leftOut: from === 0 ? leftOut : [],
      };
      for (const listener of listeners) sendTo(listener, portion);
      await setImmediate();
    }
  }

  /** A listener that throws must not end the watch of the others. */
  function sendTo(listener: Listener, portion: LiveRows<Delivery, Publication>): void {
    try {
      listener(portion);
    } catch (error) {
      log.error({ err: describeError(error) }, 'live events could not be told');
    }
  }

  async function listen(listener: Listener): Promise<() => void> {
    listeners.add(listener);
    watch ??= begin();
    const mine = watch;
    const leave = () => {
      if (listeners.delete(listener) && listeners.size === 0) end(mine);
    };
    try {
      await mine.ready;
    } catch (error) {
      listeners.delete(listener);
      end(mine);
      throw error;
    }
    return leave;
  }

  function end(ended: Watch): void {
    ended.end();
    if (watch === ended) watch = undefined;
  }

  return {
    listen,
    close: async () => {
      const last = watch;
      listeners.clear();
      if (last === undefined) return;
      end(last);
      await last.ended;
    },
  };
}

/** @returns whether to go on */
function pause(signal: AbortSignal): Promise<boolean> {
  return delay(POLL_INTERVAL_MS, undefined, { signal, ref: false }).then(
    () => true,
    () => false,
  );
}
