// A dedup store in Postgres, in the handler's own transaction: the event's id and what the handler writes are committed together,
// or neither is. So an event takes effect once, also if this process, the broker or Postgres ends at any moment.

import { type DedupStore, refuseUnknown } from './dedup.ts';

/** What this store needs of a client of `pg`. */
export type PostgresClient = {
  readonly query: (text: string, values?: unknown[]) => Promise<{ readonly rowCount: number | null }>;
  readonly release: (destroy?: boolean) => void;
  readonly on: (event: 'error', listener: () => void) => unknown;
  readonly removeListener: (event: 'error', listener: () => void) => unknown;
};

/** What this store needs of a `Pool` of `pg`. Its size limits the handlers that run at once, with the subscriber's `concurrency`. */
export type PostgresPool<Client extends PostgresClient> = {
  // As in the types of pg: with one form alone the client's type would not be found.
  connect: { (): Promise<Client>; (callback: never): void };
};

export type PostgresDedup<Client> = DedupStore<Client> & {
  /** Makes the table if it does not exist. Safe to call from several processes at once. */
  readonly prepare: () => Promise<void>;
  /**
   * Forgets ids that were handled so long ago. A copy that comes later takes effect again: keep them for longer than an operator
   * may replay events.
   * @returns how many
   */
  readonly prune: (age: { readonly olderThanMs: number }) => Promise<number>;
  /** The statements that `prepare` runs, for your own migrations. */
  readonly schema: string;
};

/** Short enough for the name of its index. */
const TABLE = /^[a-z_][a-z0-9_]{0,49}(?:\.[a-z_][a-z0-9_]{0,49})?$/;
/** The time of the handler's transaction ends a little after the handler's: the subscriber acts first. */
const MARGIN_MS = 10_000;
/** So that no transaction holds many locks, and vacuum follows. */
const PRUNE_ROWS = 10_000;
/** Any number; the same for all processes. */
const PREPARE_LOCK = 7_350_116;

/**
 * `delivery.tx` is the client, in a transaction. Do not commit, roll back or release it, await each query, and use no other client
 * for what belongs to the event. After an error that you catch, Postgres commits nothing of the transaction: put what may fail between
 * `savepoint` and `rollback to savepoint`. Otherwise the attempt fails.
 * @param pool of `pg`: `new Pool({ connectionString, max })`
 * @param table default: `tallyhook_handled_events`. May have a schema: `billing.handled_events`
 */
export function postgresDedup<Client extends PostgresClient>(options: {
  readonly pool: PostgresPool<Client>;
  readonly table?: string;
}): PostgresDedup<Client> {
  const { pool, table = 'tallyhook_handled_events', ...unknown } = options;
  refuseUnknown('postgresDedup', unknown);
  if (typeof (pool as PostgresPool<Client> | undefined)?.connect !== 'function')
    throw new TypeError('pool must be a Pool of pg');
  if (!TABLE.test(table)) throw new TypeError('table must be a name of lower-case letters, digits and _');
  const name = table.split('.').join('"."');
  const schema = schemaOf(`"${name}"`, `"${table.split('.').at(-1)}_handled_at"`);

  async function once(
    id: string,
    effect: (tx: Client) => Promise<void>,
    { queue, signal, timeLimitMs }: Parameters<DedupStore<Client>['once']>[2],
  ): Promise<'done' | 'duplicate'> {
    return onClient(async (client) => {
      signal.throwIfAborted(); // the wait for a client was too long
      await client.query(beginWith(timeLimitMs));
      // Waits for a transaction that inserts the same id. Relies on the primary key.
      const inserted = await client.query(
        `insert into "${name}" (queue, event_id) values ($1, $2) on conflict do nothing`,
        [queue, id],
      );
      if (inserted.rowCount === 0) {
        await client.query('rollback');
        return 'duplicate';
      }
      await effect(client);
      await client.query(COMMIT);
      return 'done';
    });
  }

  async function onClient<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    const client = await pool.connect();
    client.on('error', ignore);
    let isSound = false;
    try {
      const result = await work(client);
      isSound = true;
      return result;
    } finally {
      // A failed transaction ends with its connection: a handler that still runs cannot write through it any more.
      if (isSound) client.removeListener('error', ignore);
      client.release(!isSound);
    }
  }

  async function prune({ olderThanMs }: { readonly olderThanMs: number }): Promise<number> {
    return onClient(async (client) => {
      let pruned = 0;
      for (;;) {
        // Relies on the index on handled_at.
        const { rowCount } = await client.query(
          `delete from "${name}" where ctid = any (array(
             select ctid from "${name}" where handled_at < now() - $1 * interval '1 millisecond' limit ${PRUNE_ROWS}))`,
          [olderThanMs],
        );
        pruned += rowCount ?? 0;
        if ((rowCount ?? 0) < PRUNE_ROWS) return pruned;
      }
    });
  }

  async function prepare(): Promise<void> {
    await onClient(async (client) => {
      // Even if the index exists, `create index if not exists` waits for all transactions that have written to the table, and what
      // comes later waits for it.
      const found = await client.query(
        'select where to_regclass($1) is not null and to_regclass($2) is not null',
        [`"${name}"`, `"${name}_handled_at"`],
      );
      // Without the lock, two processes that create the table at once collide.
      if (found.rowCount === 0)
        await client.query(`begin; select pg_advisory_xact_lock(${PREPARE_LOCK}); ${schema} commit;`);
    });
  }

  return { once, prune, prepare, schema };
}

/** A connection that breaks would end the process without a listener. The query that uses it rejects. */
const ignore = () => {};

const schemaOf = (table: string, index: string) => `create table if not exists ${table} (
  queue text not null,
  event_id text not null,
  handled_at timestamptz not null default now(),
  primary key (queue, event_id)
);
create index if not exists ${index} on ${table} (handled_at);
`;

/**
 * A copy waits for the first one no longer than its handler may take. A process that was frozen must not hold the id for ever.
 */
const beginWith = (timeLimitMs: number) =>
  `begin; set local lock_timeout = ${Math.ceil(timeLimitMs)}; set local idle_in_transaction_session_timeout = ${Math.ceil(timeLimitMs) + MARGIN_MS}; savepoint tallyhook_event`;

/**
 * Fails unless the transaction is the one that has the id. Postgres answers a plain `commit` of a failed transaction without an
 * error, and has rolled back.
 */
const COMMIT = 'release savepoint tallyhook_event; commit';
