// What the statements of the relay read, on a ledger whose tables were empty when Postgres looked at their sizes: as on a new
// day's partition after a nightly VACUUM.

import { expect, test } from 'vitest';
import { recordDeliveries, type Statement } from '../../../src/ledger/index.ts';
import { LOAD_HELD } from '../../../src/relay/held.ts';
import { LOAD_ALL, LOAD_NEW } from '../../../src/relay/pending.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { hold } from '../../support/outbox.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { completed, newJobId } from '../../support/sender.ts';

const EVENTS = 2_000;
const BATCH = 500;
const WANTED = 10;
/** After so many runs Postgres keeps its plan. */
const RUNS = 8;

/** Of each of these tables: the events that a load finds, and one more, to know whether there are others. */
const READ_MAX = WANTED + 1;
const ROWS_READ: Statement = {
  name: 'rows-read',
  text: `select relname as table, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as rows
    from pg_stat_xact_user_tables where relname ~ '^(events|jobs|deliveries)'`,
};

async function recordMany(database: TestDatabase): Promise<void> {
  await using connection = connectTestDatabase(database);
  for (let count = 0; count < EVENTS; count += BATCH)
    await recordDeliveries(
      connection,
      Array.from({ length: BATCH }, () => eventRecord(completed(newJobId()))),
    );
}

type Load = {
  readonly name: string;
  readonly statement: Statement;
  readonly values: unknown[];
  readonly isOfHeld?: boolean;
};

const ofBatches = [[], [], [], WANTED, 1_000_000, 100, 10_000, []];
const loads: readonly Load[] = [
  { name: 'all that is pending', statement: LOAD_ALL, values: ofBatches },
  { name: 'what is new', statement: LOAD_NEW, values: [...ofBatches, '0'] },
  { name: 'what is held', statement: LOAD_HELD, values: [[], WANTED, 1_000_000, '0'], isOfHeld: true },
];

test.for(loads)(
  'a load of $name looks up the events that it finds, and reads no table whole',
  async (load) => {
    const { statement, values, isOfHeld = false } = load;
    await using database = await createTestDatabase();
    for (const table of ['events', 'jobs', 'deliveries', 'outbox_batches', 'outbox_held'])
      await database.query(`vacuum (analyze) ${table}`);
    await using connection = connectTestDatabase(database, { connections: 1 });
    for (let run = 0; run < RUNS; run++) await connection.execute(statement, values);
    await recordMany(database);
    if (isOfHeld) await hold(database, {});

    await connection.execute({ name: 'begin', text: 'begin' }, []);
    const found = await connection.execute(statement, values);
    const read = await connection.execute<{ table: string; rows: number }>(ROWS_READ, []);
    await connection.execute({ name: 'end', text: 'rollback' }, []);

    expect(found).toHaveLength(WANTED);
    for (const { table, rows } of read) expect.soft(rows, table).toBeLessThanOrEqual(READ_MAX);
  },
);
