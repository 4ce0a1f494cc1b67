import { expect, test } from 'vitest';
import { createTestDatabase } from '../../support/database.ts';
import { measureEffects } from '../../support/migration-effects.ts';
import { programWith } from '../../support/migrations.ts';
import { dumpSchema } from '../../support/schema-dump.ts';

test('the migrations give the schema that is written down in migrations/schema.sql', async () => {
  await using database = await createTestDatabase();
  // After a new migration: npm test -- test/service/ledger/schema.test.ts --update
  await expect(await dumpSchema(database)).toMatchFileSnapshot('../../../migrations/schema.sql');
});

test('what each migration locks is written down in migrations/effects.json', async () => {
  const measured = await measureEffects(programWith({}));
  const text = `${JSON.stringify(measured, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('../../../migrations/effects.json');
});

test('each migration states the oldest program that may run on it', async () => {
  await using database = await createTestDatabase();

  const stated = await database.query<{ migration: string; program: string | null }>(`
    select m.name as migration, (
      select name from kysely_migration p where p.name = r.oldest_program and p.name <= m.name
    ) as program
    from kysely_migration m left join schema_requirements r on r.migration = m.name
    order by 1`);

  expect(stated).not.toEqual([]);
  expect(stated.filter(({ program }) => program === null)).toEqual([]);
});
