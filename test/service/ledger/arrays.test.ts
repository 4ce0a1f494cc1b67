import * as fc from 'fast-check';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import {
  byteaArray,
  int2Array,
  int4Array,
  int8Array,
  textArray,
  uuidArray,
} from '../../../src/ledger/recording/arrays.ts';
import { createTestDatabase } from '../../support/database.ts';

const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(fc.option(arbitrary), { maxLength: 20 });

test('Postgres reads each array as it was written, whatever the values', async () => {
  await using database = await createTestDatabase();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const rows = fc.record({
    texts: nullable(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'))),
    bytes: nullable(fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes))),
    small: nullable(fc.integer({ min: -32_768, max: 32_767 })),
    large: nullable(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
    numbers: nullable(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)),
    ids: nullable(fc.uuid()),
  });
  try {
    await fc.assert(
      fc.asyncProperty(rows, async ({ texts, bytes, small, large, numbers, ids }) => {
        const found = await client.query(
          `select $1::text[] as texts, $2::bytea[] as bytes, $3::int2[] as small, $4::int4[] as large,
                  $5::uuid[]::text[] as ids, $6::int8[] as numbers`,
          [
            textArray(texts),
            byteaArray(bytes),
            int2Array(small),
            int4Array(large),
            uuidArray(ids),
            int8Array(numbers),
          ],
        );
        expect(found.rows).toEqual([{ texts, bytes, small, large, ids, numbers }]);
      }),
    );
  } finally {
    await client.end();
  }
});
