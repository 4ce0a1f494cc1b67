// Deliveries and publications as they happen, on all replicas: new rows are read from the ledger every second, once for
// all who listen, and only while somebody does. A hint of what is going on: what is too much for a look is left out and
// counted, and the lists are the record.

import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../../errors.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { createNewcomers, type Newcomers, type RowKey } from './newcomers.ts';

/** How the rows of both lists are read; what they look like is their own files' business. */
export type LiveReaders<Delivery, Publication> = {
  readonly deliveries: (keys: readonly RowKey[]) => Promise<readonly Delivery[]>;
  readonly publications: (keys: readonly RowKey[]) => Promise<readonly Publication[]>;
};

const LISTS = ['deliveries', 'publications'] as const;

export type LeftOut = {
  readonly list: (typeof LISTS)[number];
  /** At least. */
  readonly count: number;
  /** When the first of them was stamped. */
  readonly since: string;
};

/** A portion of what one look found. Each list is in the order of its time. */
export type LiveLook<Delivery, Publication> = {
  readonly deliveries: readonly Delivery[];
  readonly publications: readonly Publication[];
  readonly leftOut: readonly LeftOut[];
};

export type Live<Delivery, Publication> = {
  /**
   * Calls `listener` with whatever is committed from now on. Resolves once nothing will be missed.
   * @returns what ends it. Safe to call twice.
   * @throws whatever the driver throws if the ledger cannot be read now
   */
  readonly listen: (listener: (look: LiveLook<Delivery, Publication>) => void) => Promise<() => void>;
  /** Looks no more. Safe to call twice. */
  readonly close: () => Promise<void>;
};

const LOOK_INTERVAL_MS = 1_000;
/** Of each list a look: what a person could not follow, and a fast program still can. */
export const ROWS_A_LOOK = 1_000;
/** Some 30 KB. */
const PORTION_ROWS = 50;

export function createLive<Delivery, Publication>(options: {
  connection: DatabaseConnection;
  readers: LiveReaders<Delivery, Publication>;
  /** Longer than any statement that adds rows takes to commit. */
  lateMs: number;
  log: Logger;
}): Live<Delivery, Publication> {
  const { connection, readers, lateMs, log } = options;
  type Listener = (look: LiveLook<Delivery, Publication>) => void;
  type Both = { readonly deliveries: Newcomers; readonly publications: Newcomers };
  type Watch = { readonly ready: Promise<unknown>; readonly end: () => void; readonly ended: Promise<void> };
  const listeners = new Set<Listener>();
  let watch: Watch | undefined;

  function begin(): Watch {
    const ending = new AbortController();
    const newcomers = {
      deliveries: createNewcomers({
        connection,
        of: { table: 'deliveries', time: 'received_at' },
        lateMs,
        rowsMax: ROWS_A_LOOK,
      }),
      publications: createNewcomers({
        connection,
        of: { table: 'publications', time: 'published_at' },
        lateMs,
        rowsMax: ROWS_A_LOOK,
      }),
    };
    const ready = prime(newcomers);
    const ended = ready.then(
      () => run(newcomers, ending.signal),
      () => {}, // those who wait for it are told
    );
    return { ready, end: () => ending.abort(), ended };
  }

  /**
   * Publications first: then no publication is told before the delivery that it came of. Where one list could not be
   * read the other is told, since it is not found again.
   */
  async function look(
    newcomers: Both,
  ): Promise<LiveLook<Delivery, Publication> & { errors: readonly unknown[] }> {
    const [publications] = await Promise.allSettled([newcomers.publications.look(readers.publications)]);
    const [deliveries] = await Promise.allSettled([newcomers.deliveries.look(readers.deliveries)]);
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

  async function prime(newcomers: Both): Promise<void> {
    const { errors } = await look(newcomers);
    if (errors.length > 0) throw errors[0];
  }

  async function run(newcomers: Both, signal: AbortSignal): Promise<void> {
    let isFailing = false;
    while (await pause(signal)) {
      const { errors, ...found } = await look(newcomers);
      if (errors.length > 0 && !isFailing) {
        log.warn({ err: describeError(errors[0]) }, 'nothing new can be read for those who listen');
      }
      isFailing = errors.length > 0; // what is missed meanwhile is found when it works again
      if (!signal.aborted) await tell(found); // those who listen now have a watch of their own
    }
  }

  /** In portions, so that whoever reads as it comes is never handed more at once than fits on his connection. */
  async function tell({ deliveries, publications, leftOut }: LiveLook<Delivery, Publication>): Promise<void> {
    const rows = Math.max(deliveries.length, publications.length, leftOut.length);
    for (let from = 0; from < rows; from += PORTION_ROWS) {
      const portion = {
        deliveries: deliveries.slice(from, from + PORTION_ROWS),
        publications: publications.slice(from, from + PORTION_ROWS),
        leftOut: from === 0 ? leftOut : [],
      };
      for (const listener of listeners) tellOne(listener, portion);
      await setImmediate();
    }
  }

  /** One that fails must not end the watch of the others. */
  function tellOne(listener: Listener, portion: LiveLook<Delivery, Publication>): void {
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
  return delay(LOOK_INTERVAL_MS, undefined, { signal, ref: false }).then(
    () => true,
    () => false,
  );
}
