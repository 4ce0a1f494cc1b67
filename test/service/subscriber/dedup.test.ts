// An event takes effect once: with each store, whatever is repeated or breaks off.

import { Pool, type PoolClient } from 'pg';
import { expect, expectTypeOf, test } from 'vitest';
import { type DedupStore, memoryDedup, postgresDedup } from '../../../src/subscriber/index.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { startProxy } from '../../support/proxy.ts';
import { type SubscriberWorld, startSubscriberWorld } from '../../support/subscribers.ts';
import { until } from '../../support/until.ts';

const LIMIT = { limitMs: 20_000, pollMs: 10 };
const ID = 'default:job_1:completed';

type Store = AsyncDisposable & { readonly pool: Pool; readonly dedup: ReturnType<typeof storeOf> };

const storeOf = (pool: Pool) => postgresDedup({ pool });

/** The end of the test kills what the pool is about to close. */
function openPool(url: string): Pool {
  const pool = new Pool({ connectionString: url, max: 5 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** A store with its table, and a table for effects without a key: it shows each one. */
async function openStore(database: TestDatabase, url = database.url): Promise<Store> {
  const pool = openPool(url);
  const dedup = storeOf(pool);
  await Promise.all([dedup.prepare(), storeOf(pool).prepare()]); // two processes at once
  await database.query('create table if not exists bills (event_id text not null)');
  return { pool, dedup, [Symbol.asyncDispose]: () => pool.end() };
}

const bills = async (database: TestDatabase) =>
  (await database.query<{ event_id: string }>('select event_id from bills')).map(({ event_id }) => event_id);

async function publishTwice(world: SubscriberWorld): Promise<void> {
  for (let copy = 0; copy < 2; copy += 1) await world.publish([{ job: 'job_1' }]);
}

test('memory: a copy is acknowledged and not handled; without a store it is handled', async () => {
  for (const [dedup, calls] of [
    [undefined, 1],
    [memoryDedup({ idsMax: 5 }), 1],
    [false, 2],
  ] as const) {
    await using world = await startSubscriberWorld();
    let called = 0;
    await world.subscribe({
      ...(dedup === undefined ? {} : { dedup }),
      on: { completed: () => (called += 1) },
    });

    await publishTwice(world);

    await world.untilNotice('handled', calls);
    const duplicates = await world.untilNotice('duplicate', 2 - calls);
    expect(duplicates.map(({ id }) => id)).toEqual(calls === 1 ? [ID] : []);
    expect(called).toBe(calls);
    await world.untilDepth(world.queue, 0);
  }
});

test('memory: an event whose handler failed is not remembered, nor is what was forgotten beyond the bound', async () => {
  const store = memoryDedup({ idsMax: 1 });
  const context = { queue: 'q', signal: new AbortController().signal, timeLimitMs: 1_000 };
  const effects: string[] = [];
  const once = (id: string) =>
    store.once(
      id,
      async () => {
        effects.push(id);
        if (effects.length === 1) throw new Error('not yet');
      },
      context,
    );

  await expect(once('a')).rejects.toThrow('not yet');
  expect([await once('a'), await once('a'), await once('b'), await once('a')]).toEqual([
    'done',
    'duplicate',
    'done',
    'done',
  ]);
  expect(await store.once('a', async () => {}, { ...context, queue: 'another' })).toBe('done');
});

test('your own store decides, and lends what it likes', async () => {
  await using world = await startSubscriberWorld();
  const seen: string[] = [];
  const dedup: DedupStore<{ name: string }> = {
    once: async (id, effect, { queue }) => {
      seen.push(`${queue} ${id}`);
      if (seen.length > 1) return 'duplicate';
      await effect({ name: 'mine' });
      return 'done';
    },
  };
  const lent: string[] = [];
  await world.subscribe<{ name: string }>({
    dedup,
    on: {
      completed: (_, { tx }) => {
        expectTypeOf(tx).toEqualTypeOf<{ name: string }>();
        lent.push(tx.name);
      },
    },
  });

  await publishTwice(world);

  await world.untilNotice('duplicate');
  expect(lent).toEqual(['mine']);
  expect(seen).toEqual([`${world.queue} ${ID}`, `${world.queue} ${ID}`]);
});

test('Postgres: effect and id are committed together, and a failed handler leaves neither', async () => {
  await using world = await startSubscriberWorld();
  await using database = await createTestDatabase({ empty: true });
  await using store = await openStore(database);
  await world.subscribe<PoolClient>({
    dedup: store.dedup,
    on: {
      completed: async (event, { tx, attempt }) => {
        expectTypeOf(tx).toEqualTypeOf<PoolClient>();
        await tx.query('insert into bills values ($1)', [event.id]);
        if (attempt === 1) throw new Error('the bank is closed');
      },
    },
  });

  await publishTwice(world);

  await world.untilNotice('duplicate');
  expect(await bills(database)).toEqual([ID]);
  expect(world.noticesOf('handled')).toMatchObject([{ attempt: 2 }]);
  expect(store.pool.totalCount - store.pool.idleCount).toBe(0); // no client is kept
});

test.for(['before the effect', 'after the effect', 'at the commit'])(
  'Postgres: with its connection killed %s, there is one effect',
  async (when) => {
    await using world = await startSubscriberWorld();
    await using database = await createTestDatabase({ empty: true });
    await using store = await openStore(database);
    const kill = async (client: PoolClient) => {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      await database.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    };
    await world.subscribe<PoolClient>({
      dedup: store.dedup,
      on: {
        completed: async (event, { tx, attempt }) => {
          const isKilled = attempt === 1;
          if (isKilled && when === 'before the effect') await kill(tx);
          await tx.query('insert into bills values ($1)', [event.id]);
          if (isKilled && when === 'after the effect') await kill(tx);
          if (isKilled && when === 'at the commit') void kill(tx).catch(() => {});
        },
      },
    });

    await publishTwice(world);

    await world.untilNotice('duplicate');
    expect(await bills(database)).toEqual([ID]);
  },
);

test.for([
  [
    'catches the error of a query',
    async (tx: PoolClient): Promise<void> => void (await tx.query('select 1/0').catch(() => {})),
  ],
  [
    'does not await a query that fails',
    async (tx: PoolClient): Promise<void> => void tx.query('select 1/0').catch(() => {}),
  ],
  ['rolls back', async (tx: PoolClient): Promise<void> => void (await tx.query('rollback'))],
] as const)('Postgres: a handler that %s has failed, and nothing is lost', async ([, spoil]) => {
  await using world = await startSubscriberWorld();
  await using database = await createTestDatabase({ empty: true });
  await using store = await openStore(database);
  await world.subscribe<PoolClient>({
    dedup: store.dedup,
    on: {
      completed: async (event, { tx, attempt }) => {
        await tx.query('insert into bills values ($1)', [event.id]);
        if (attempt === 1) await spoil(tx);
      },
    },
  });

  await world.publish([{ job: 'job_1' }]);

  expect(await world.untilNotice('handled')).toMatchObject([{ attempt: 2 }]);
  expect(await bills(database)).toEqual([ID]);
});

test('Postgres: prepare waits for no handler, once the table is there', async () => {
  await using database = await createTestDatabase({ empty: true });
  await using store = await openStore(database);
  const client = await store.pool.connect();
  await client.query('begin');
  await client.query(`insert into tallyhook_handled_events (queue, event_id) values ('a', 'b')`);

  await expect(store.dedup.prepare()).resolves.toBeUndefined();

  await client.query('rollback');
  client.release();
});

test('a store refuses options that it does not have', () => {
  expect(() => memoryDedup({ max: 5 } as object)).toThrow("memoryDedup has no option 'max'");
  expect(() => memoryDedup({ idsMax: 0 })).toThrow('idsMax must be a whole number from 1');
  expect(() => postgresDedup({} as never)).toThrow('pool must be a Pool of pg');
  expect(() => postgresDedup({ pool: new Pool(), tabel: 'x' } as never)).toThrow(
    "postgresDedup has no option 'tabel'",
  );
});

test('Postgres: while it is away no event is given up, and then each takes effect once', async () => {
  await using world = await startSubscriberWorld();
  await using database = await createTestDatabase({ empty: true });
  await using proxy = await startProxy(database.url, { defaultPort: 5432 });
  await using store = await openStore(database, proxy.url);
  proxy.refuse();
  proxy.cut();
  await world.subscribe<PoolClient>({
    dedup: store.dedup,
    attempts: 2,
    on: {
      completed: async (event, { tx }) => void (await tx.query('insert into bills values ($1)', [event.id])),
    },
  });

  await world.publish([{ job: 'job_1' }, { job: 'job_2' }]);
  await world.untilNotice('retry', 10);
  proxy.heal();

  await world.untilNotice('handled', 2);
  expect((await bills(database)).toSorted()).toEqual([ID, 'default:job_2:completed']);
  expect(world.noticesOf('dead_lettered')).toEqual([]);
  expect(world.noticesOf('retry')[0]?.message).toMatch(/and does not count.*the dedup store: ./);
});

test('Postgres: after a crash between the commit and the acknowledgement the copy has no second effect', async () => {
  await using world = await startSubscriberWorld();
  await using database = await createTestDatabase({ empty: true });
  await using store = await openStore(database);
  const dying: DedupStore<PoolClient> = {
    once: async (id, effect, context) => {
      await store.dedup.once(id, effect, context);
      // The process is as good as dead: committed, and it never acknowledges.
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(new Error('dead')));
      });
    },
  };
  const on = {
    completed: async (event: { id: string }, { tx }: { tx: PoolClient }) =>
      tx.query('insert into bills values ($1)', [event.id]),
  };
  const dead = await world.subscribe<PoolClient>({ dedup: dying, on, stopLimitMs: 0 });
  await world.publish([{ job: 'job_1' }]);
  await until(
    'it is committed',
    async () => ((await bills(database)).length === 1 ? true : undefined),
    LIMIT,
  );
  await dead.stop();

  await world.subscribe<PoolClient>({ dedup: store.dedup, on });

  expect(await world.untilNotice('duplicate')).toMatchObject([{ id: ID, redelivered: true }]);
  expect(await bills(database)).toEqual([ID]);
});

test('Postgres: of two copies in two processes the second waits for the first, and takes over if that fails', async () => {
  await using database = await createTestDatabase({ empty: true });
  await using store = await openStore(database);
  const context = { queue: 'q', signal: new AbortController().signal, timeLimitMs: 20_000 };
  const waiting = () =>
    until(
      'the second one waits',
      async () =>
        (await database.query(`select from pg_stat_activity where wait_event = 'transactionid'`)).length === 1
          ? true
          : undefined,
      LIMIT,
    );
  for (const [isGood, second] of [
    [false, 'done'],
    [true, 'duplicate'],
  ] as const) {
    const gate = Promise.withResolvers<void>();
    const id = `event ${second}`;
    const begun = Promise.withResolvers<void>();
    const first = store.dedup.once(
      id,
      async () => {
        begun.resolve();
        await gate.promise;
        if (!isGood) throw new Error('it fails');
      },
      context,
    );
    first.catch(() => {});
    await begun.promise;
    const copy = store.dedup.once(id, async () => {}, context);
    await waiting();
    gate.resolve();
    expect(await copy).toBe(second);
    expect(await first.catch((error: Error) => error.message)).toBe(isGood ? 'done' : 'it fails');
  }
  // Each queue has its own ids.
  expect(await store.dedup.once('event done', async () => {}, { ...context, queue: 'mail' })).toBe('done');
});

test('Postgres: prune forgets old ids only; the documented statements make the same table', async () => {
  await using database = await createTestDatabase({ empty: true });
  const pool = openPool(database.url);
  try {
    await database.query('create schema billing');
    const dedup = postgresDedup({ pool, table: 'billing.handled_events' });
    await pool.query(dedup.schema);
    await dedup.prepare();
    await database.query(`insert into billing.handled_events values
      ('q', 'old', now() - interval '31 days'), ('q', 'new', now() - interval '29 days')`);

    expect(await dedup.prune({ olderThanMs: 30 * 24 * 3_600_000 })).toBe(1);

    const left = await database.query<{ event_id: string }>('select event_id from billing.handled_events');
    expect(left).toEqual([{ event_id: 'new' }]);
    expect(() => postgresDedup({ pool, table: 'a; drop table b' })).toThrow(TypeError);
  } finally {
    await pool.end();
  }
});
