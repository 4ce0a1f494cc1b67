// The hash of a body that is kept is not stored, and is there for whoever reads it.

import { expect, test } from 'vitest';
import { type DeliveryRecord, recordDeliveries } from '../../../src/ledger/recording/record.ts';
import { findDelivery } from '../../../src/operators/deliveries/queries.ts';
import { sha256 } from '../../../src/base/signing/sha256.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventRecord } from '../../support/records.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { completed, newJobId } from '../../support/sender.ts';

type Stored = { body_sha256: Buffer | null; body: Buffer | null };

const storedOf = async (database: TestDatabase, { id }: DeliveryRecord): Promise<Stored | undefined> =>
  (await database.query<Stored>('select body_sha256, body from deliveries where id = $1', [id]))[0];

test('the hash of a body is shown, and stored only where the body is not kept', async () => {
  await using database = await createTestDatabase();
  await using connection = connectTestDatabase(database);
  const job = completed(newJobId());
  const first = eventRecord(job);
  const [again, other] = [eventRecord(`${JSON.stringify(job)} `), eventRecord({ ...job, cost_cents: 1 })];
  for (const record of [first, again, other]) await recordDeliveries(connection, [record]);

  for (const record of [first, again, other]) {
    const shown = await findDelivery(connection.db, record.id);
    expect(shown?.body_sha256).toBe(sha256(record.body ?? '').toString('hex'));
  }
  const kept = [first, again, other].map(async (record) => {
    const row = await storedOf(database, record);
    return [row?.body !== null, row?.body_sha256 !== null];
  });
  expect(await Promise.all(kept)).toEqual([
    [true, false],
    [false, true],
    [true, false],
  ]);
});
