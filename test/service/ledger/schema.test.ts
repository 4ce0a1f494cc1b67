import { expect, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { dumpSchema } from '../../support/schema-dump.ts';

test('the migrations give the schema that is written down in migrations/schema.sql', async () => {
  await using database = await createTestDatabase();
  // After a new migration: npm test -- test/service/ledger/schema.test.ts --update
  await expect(await dumpSchema(database)).toMatchFileSnapshot('../../../migrations/schema.sql');
});
