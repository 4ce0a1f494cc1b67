// One box for ids, error codes, sources and the begin of a job's id: what it leads to, for whom, and what it reads.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { completed, deliver, failed, progress, SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

type Item = { what: string; id: string; source: string | null; state: string | null; at: string | null };
type Found = {
  items: Item[];
  more_of: string[];
  looked_through: { jobs: number; back_to: string | null } | null;
};

let folder: TestFolder;
let relay: TestService;
let all: Operators;
let ofTeamA: Operators;

beforeAll(async () => {
  folder = await createFolder();
  const secrets = { secrets: [SECRET] };
  const sources = { 'team-a': secrets, 'team-b': secrets, 'team-c': secrets };
  relay = await startTestService({
    env: { SOURCES_FILE: await folder.write('sources.json', JSON.stringify(sources)) },
  });
  all = await operators(relay, { role: 'viewer' });
  ofTeamA = await operators(relay, { role: 'viewer', sources: ['team-a'] });
  const to = (source: string) => `${relay.webhooks}/${source}`;
  await deliver(to('team-a'), completed('job_1'));
  await deliver(to('team-b'), failed('job_1', { error_code: 'ONLY_IN_B' }));
  await deliver(to('team-a'), progress('job_10', 5));
  await deliver(to('team-a'), { job_id: 'held', status: 'exploded' });
  for (let n = 0; n < 30; n++) await deliver(to('team-b'), completed(`many_${String(n).padStart(2, '0')}`));
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

async function find(text: string, caller = all): Promise<Found> {
  const { status, body } = await caller.get<Found>(`/search?q=${encodeURIComponent(text)}`);
  expect(status).toBe(200);
  return body;
}
const namesOf = ({ items }: Found) =>
  items.map(({ what, source, id, state }) => [what, source, id, state].join(' '));
const deliveryOf = async (jobId: string, source: string) => {
  const [row] = await relay.database.query<{ id: string }>(
    'select id from deliveries where job_id = $1 and source = $2',
    [jobId, source],
  );
  return row?.id ?? '';
};

describe('a search', () => {
  test('for a job leads to it in every source, the newest first, and to jobs that begin so', async () => {
    const found = await find('  job_1\n');
    expect(namesOf(found)).toEqual([
      'job team-b job_1 failed',
      'job team-a job_1 completed',
      'job_prefix team-a job_10 processing',
    ]);
    expect(found.more_of).toEqual([]);
    expect(found.items.every(({ at }) => /^\d{4}-\d\d-\d\dT.*Z$/.test(at ?? ''))).toBe(true);
  });

  test('for a job whose deliveries are all in quarantine leads to it', async () => {
    expect(namesOf(await find('held'))).toEqual(['job team-a held quarantined']);
  });

  test('for the begin of an id lists the first jobs in order, and says that there are more', async () => {
    const found = await find('many_');
    expect(found.items.map(({ id }) => id)).toEqual(
      Array.from({ length: 25 }, (_, n) => `many_${String(n).padStart(2, '0')}`),
    );
    expect(found.more_of).toEqual(['job_prefix']);
  });

  test('for the id of an event, a delivery or a replay leads to it, in any case of its digits', async () => {
    expect(namesOf(await find('team-b:job_1:failed'))).toEqual(['event team-b team-b:job_1:failed failed']);
    expect(namesOf(await find('team-a:job_10:processing:5'))).toEqual([
      'event team-a team-a:job_10:processing:5 progress',
    ]);
    const delivery = await deliveryOf('held', 'team-a');
    expect(namesOf(await find(delivery.toUpperCase()))).toEqual([`delivery team-a ${delivery} quarantined`]);
    const operator = await operators(relay, { role: 'operator' });
    const { body } = await operator.post<{ id: string }>('/replays', { filter: { source: 'team-b' } });
    expect(namesOf(await find(body.id))).toEqual([expect.stringContaining(`replay  ${body.id}`)]);
    expect(await find(body.id, ofTeamA)).toMatchObject({ items: [], more_of: [] });
  });

  test('for an error code or a source leads to these', async () => {
    expect(namesOf(await find('ONLY_IN_B'))).toEqual(['error_code  ONLY_IN_B ']);
    expect(namesOf(await find('team-b'))).toEqual(['source team-b team-b configured']);
    expect(await find('team-c')).toMatchObject({ items: [{ what: 'source', at: null }] });
  });

  test('finds nothing for what nothing is called', async () => {
    for (const text of ['nothing', '%', '_', "'", 'team-a:job_1:processing:999', '\u{10ffff}']) {
      expect(await find(text)).toMatchObject({ items: [], more_of: [] });
    }
  });

  test('with a token that is limited to some sources leads to nothing of others', async () => {
    expect(namesOf(await find('job_1', ofTeamA))).toEqual([
      'job team-a job_1 completed',
      'job_prefix team-a job_10 processing',
    ]);
    const foreign = [
      'many_',
      'team-b:job_1:failed',
      'ONLY_IN_B',
      'team-b',
      await deliveryOf('job_1', 'team-b'),
    ];
    for (const text of foreign) expect(await find(text, ofTeamA)).toMatchObject({ items: [], more_of: [] });
  });

  test('for the middle of an id finds newer jobs, whatever the case, in the sources that may be seen, and says how far it looked', async () => {
    const found = await find('ANY_0');
    expect(found.items).toHaveLength(10);
    expect(namesOf(found)[0]).toBe('job_part team-b many_09 completed');
    expect(found).toMatchObject({ more_of: [], looked_through: { jobs: 33, back_to: null } });
    expect((await find('any_')).more_of).toEqual(['job_part']);
    // What is named is not looked for, nor what is shorter than three characters.
    expect(await find('job_1')).toMatchObject({ looked_through: null });
    expect(await find('ny')).toMatchObject({ items: [], looked_through: null });
    // Of its own sources alone, and it counts no others.
    expect(await find('any_', ofTeamA)).toEqual({
      items: [],
      more_of: [],
      looked_through: { jobs: 2, back_to: null },
    });
  });

  test('for the middle of an id looks through the newest 20,000 jobs, a share of each source, and says back to when', async () => {
    await using other = await startTestService();
    await other.database.query(
      `insert into jobs (source, job_id, last_status, first_seen_at, last_seen_at)
       select source, 'a_' || source || '_' || n, 'processing', now() - n * interval '1 second', now()
       from generate_series(1, 10001) n, unnest(array['team-a', 'team-b']) source`,
    );
    const { get } = await operators(other, { role: 'viewer' });
    const look = async (text: string) => (await get<Found>(`/search?q=${text}`)).body;
    const [{ at } = { at: '' }] = await other.database.query<{ at: Date }>(
      `select first_seen_at as at from jobs where job_id = 'a_team-a_10000'`,
    );

    expect((await look('team-b_10000')).items).toMatchObject([{ what: 'job_part', id: 'a_team-b_10000' }]);
    const tooOld = await look('team-b_10001');
    expect(tooOld).toMatchObject({ items: [], looked_through: { jobs: 20_000 } });
    expect(Date.parse(tooOld.looked_through?.back_to ?? '')).toBe(new Date(at).getTime());
  });

  test.each([
    ['nothing', ''],
    ['white space alone', '?q=%20%09'],
    ['an empty text', '?q='],
    ['257 characters', `?q=${'x'.repeat(257)}`],
    ['a NUL', '?q=a%00b'],
    ['an unpaired surrogate', '?q=%ED%A0%80'],
    ['another parameter', '?q=a&limit=5'],
  ])('of %s is a 400', async (_what, query) => {
    expect(await all.get(`/search${query}`)).toMatchObject({ status: 400 });
  });

  test('of 256 characters with white space around is searched for', async () => {
    expect(await find(`  ${'x'.repeat(256)}  `)).toMatchObject({ items: [], more_of: [] });
  });
});
