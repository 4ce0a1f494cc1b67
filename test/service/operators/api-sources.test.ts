import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createFolder } from '../../support/folder.ts';
import { deliveries } from '../../support/ledger.ts';
import { type Operators, operators } from '../../support/operators.ts';
import { secretOf } from '../../support/records.ts';
import { completed, deliver, failed, newJobId, progress, SECRET } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

const OLD = 'planted-old-secret-of-team-a';
const NEW = 'planted-new-secret-of-team-a';
const SHARED = 'planted-secret-of-team-a-and-team-b';
const fingerprint = (secret: string) => secretOf(secret).fingerprint;

type Drift = {
  kind: string;
  name: string;
  status: string;
  value_type: string;
  count: number;
  first_seen_at: string;
  last_seen_at: string;
  sample_delivery_id: string;
};
type Source = {
  source: string;
  configured: boolean;
  last_delivery_at: string | null;
  rates: { last_5m: number; last_1h: number; last_24h: number };
  secrets: { fingerprint: string; configured: boolean; last_matched_at: string | null }[];
  drift: Drift[];
  busiest_refused_addresses: { address: string; count: number }[];
};

const sourcesOf = async (as: Operators): Promise<Map<string, Source>> => {
  const { status, body } = await as.get<{ items: Source[] }>('/sources');
  expect(status).toBe(200);
  return new Map(body.items.map((item) => [item.source, item]));
};

/** With `teams` as SOURCES_FILE, and the counts of the services before written. */
async function startWithTeams(
  database: TestDatabase,
  teams: Record<string, string[]>,
): Promise<{ relay: TestService; viewer: Operators } & AsyncDisposable> {
  const folder = await createFolder();
  const content = Object.fromEntries(Object.entries(teams).map(([name, secrets]) => [name, { secrets }]));
  const file = await folder.write('sources.json', JSON.stringify(content));
  const relay = await startTestService({ database, env: { SOURCES_FILE: file } });
  return {
    relay,
    viewer: await operators(relay, { role: 'viewer' }),
    [Symbol.asyncDispose]: async () => {
      await relay[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

describe('after some deliveries', () => {
  let database: TestDatabase;
  let later: Awaited<ReturnType<typeof startWithTeams>>;
  let started: Date;

  beforeAll(async () => {
    database = await createTestDatabase();
    started = new Date();
    {
      await using first = await startWithTeams(database, {
        'team-a': [OLD, NEW, SHARED],
        'team-b': [SHARED],
        'team-gone': [OLD],
      });
      const send = async (source: string, content: object, secret: string) =>
        deliver(`${first.relay.intake}/webhooks/${source}`, JSON.stringify(content), { secret });
      await send('team-a', completed(newJobId()), OLD);
      await send('team-a', { ...completed(newJobId()), queue_name: 'planted', retries: 2 }, NEW);
      await send('team-a', { ...completed(newJobId()), queue_name: null }, NEW);
      await send('team-a', { ...progress(newJobId(), 5), queue_name: 'planted' }, NEW);
      const job = newJobId();
      await send('team-a', { ...failed(job), extra: 'planted' }, NEW);
      await send('team-a', { ...failed(job), extra: 'planted' }, NEW); // a copy: its body is not kept
      await send('team-a', { job_id: newJobId(), status: 'cancelled' }, NEW);
      await send('team-a', completed(newJobId()), SHARED);
      await send('team-b', completed(newJobId()), SHARED);
      await send('team-gone', completed(newJobId()), OLD);
      await send('team-nobody', completed(newJobId()), OLD);
    }
    later = await startWithTeams(database, { 'team-a': [NEW, SHARED], 'team-b': [SHARED], 'team-c': [OLD] });
  });
  afterAll(async () => {
    await later[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  test('each source that is set up or was heard of is there, and who is which', async () => {
    const found = await sourcesOf(later.viewer);

    expect([...found.keys()]).toEqual(['default', 'team-a', 'team-b', 'team-c', 'team-gone', 'unknown']);
    expect([...found.values()].filter(({ configured }) => !configured).map(({ source }) => source)).toEqual([
      'team-gone',
      'unknown',
    ]);
    expect(found.get('team-c')).toEqual({
      source: 'team-c',
      configured: true,
      last_delivery_at: null,
      rates: { last_5m: 0, last_1h: 0, last_24h: 0 },
      errors_24h: {},
      secrets: [{ fingerprint: fingerprint(OLD), configured: true, last_matched_at: null }],
      drift: [],
      busiest_refused_addresses: [],
    });
  });

  test('the last delivery and the rates are those of the ledger and the statistics', async () => {
    const found = (await sourcesOf(later.viewer)).get('team-a');
    const [row] = await database.query<{ last: Date }>(
      "select max(received_at) as last from deliveries where source = 'team-a'",
    );

    expect(found?.last_delivery_at?.slice(0, 23)).toBe(row?.last.toISOString().slice(0, 23));
    // Eight in the five minutes before this one and what has passed of it.
    expect(found?.rates.last_5m).toBeGreaterThan(8 / 6.01);
    expect(found?.rates.last_5m).toBeLessThanOrEqual(8 / 5);
    expect(found?.rates.last_24h).toBeCloseTo(8 / 1_440, 2);
  });

  test('each secret tells when it matched last, also one of two sources and one that was taken out', async () => {
    const found = await sourcesOf(later.viewer);
    const matched = (source: string) =>
      found.get(source)?.secrets.map((secret) => [secret.fingerprint, secret.configured]);

    expect(matched('team-a')).toEqual([
      [fingerprint(NEW), true],
      [fingerprint(SHARED), true],
      [fingerprint(OLD), false],
    ]);
    expect(matched('team-b')).toEqual([[fingerprint(SHARED), true]]);
    expect(matched('default')).toEqual([[fingerprint(SECRET), true]]);
    for (const source of ['team-a', 'team-b', 'team-gone']) {
      for (const { last_matched_at: at } of found.get(source)?.secrets ?? []) {
        expect(Date.parse(at ?? '')).toBeGreaterThanOrEqual(started.getTime() - 1);
        expect(Date.parse(at ?? '')).toBeLessThan(Date.now() + 1_000);
      }
    }
    expect(found.get('default')?.secrets[0]?.last_matched_at).toBeNull();
  });

  test('when a secret matched is known after its deliveries are gone', async () => {
    await using copy = await createTestDatabase();
    await copy.query("insert into secret_matches values ('default', $1, '2025-06-01T10:00:00Z')", [
      fingerprint(SECRET),
    ]);
    await using relay = await startTestService({ database: copy });

    const found = (await sourcesOf(await operators(relay))).get('default');

    expect(found?.secrets).toEqual([
      { fingerprint: fingerprint(SECRET), configured: true, last_matched_at: '2025-06-01T10:00:00.000Z' },
    ]);
  });

  test('what was matched since the last time it was noted is seen in the ledger', async () => {
    await using relay = await startTestService();
    await deliver(relay.webhooks, completed(newJobId()));
    expect(await relay.database.query('select from secret_matches')).toEqual([]);

    const found = (await sourcesOf(await operators(relay))).get('default');

    const [delivery] = await deliveries(relay.database);
    expect(found?.secrets[0]?.last_matched_at).toBe(delivery?.received_at.toISOString());
  });

  test('unknown fields and statuses are counted, with a delivery whose body is kept, and no value', async () => {
    const { drift = [] } = (await sourcesOf(later.viewer)).get('team-a') ?? {};
    const kept = new Map((await deliveries(database)).map(({ id, body }) => [id, body?.toString()]));

    const counted = drift.map(({ kind, status, name, value_type, count }) => [
      kind,
      status,
      name,
      value_type,
      count,
    ]);
    expect(counted.toSorted((a, b) => String(a).localeCompare(String(b)))).toEqual([
      ['field', 'completed', 'queue_name', 'null', 2],
      ['field', 'completed', 'retries', 'number', 1],
      ['field', 'failed', 'extra', 'string', 1],
      ['field', 'processing', 'queue_name', 'string', 1],
      ['status', 'cancelled', 'cancelled', 'string', 1],
    ]);
    for (const { name, sample_delivery_id: id } of drift) expect(kept.get(id)).toContain(name);
    expect(JSON.stringify(drift)).not.toContain('planted');
  });

  test('a token that is limited sees its own sources alone', async () => {
    const limited = await operators(later.relay, { role: 'viewer', sources: ['team-b', 'team-gone'] });

    expect([...(await sourcesOf(limited)).keys()]).toEqual(['team-b', 'team-gone']);
  });
});

test('first seen stays, counts grow, and a source has 200 fields at most and room for a status', async () => {
  await using database = await createTestDatabase();
  const round = async (names: string[]) => {
    await using relay = await startTestService({ database });
    for (let at = 0; at < names.length; at += 20) {
      const unknown = Object.fromEntries(names.slice(at, at + 20).map((name) => [name, 1]));
      await deliver(relay.webhooks, { ...completed(newJobId()), ...unknown });
    }
  };
  const rows = () =>
    database.query<{ name: string; count: string; first: string; last: string }>(
      'select name, count, first_seen_at::text as first, last_seen_at::text as last from drift order by name',
    );

  await round(['a', 'b']);
  const [before] = await rows();
  await round(['a', ...Array.from({ length: 250 }, (_, n) => `made_up_${n}`)]);
  await round(['a', 'late']);
  {
    await using relay = await startTestService({ database });
    await deliver(relay.webhooks, { ...completed(newJobId()), status: 'exploded' });
  }

  const [status, ...after] = (await rows()).toSorted((a) => (a.name === 'exploded' ? -1 : 0));
  expect(status?.name).toBe('exploded');
  expect(after).toHaveLength(200);
  expect(after[0]).toMatchObject({ name: 'a', count: '3', first: before?.first });
  expect(after[0]?.last).not.toBe(before?.last);
  expect(after.map(({ name }) => name)).not.toContain('late');
});

test('the code of a failure is in the event and the delivery, whole or not at all', async () => {
  await using relay = await startTestService();
  const codes = ['INVALID_INPUT', 'über 9', 'x'.repeat(256), 'x'.repeat(257), 'a\0b', 'a\nb', ''];
  const jobs = codes.map(() => newJobId());
  for (const [index, code] of codes.entries()) {
    const { status } = await deliver(relay.webhooks, failed(jobs[index] ?? '', { error_code: code }));
    expect(status).toBe(202);
  }
  await deliver(relay.webhooks, failed(jobs[0] ?? '', { error_code: 'OTHER' })); // a conflict
  await deliver(relay.webhooks, progress(newJobId(), 5, { error_code: 'NONE' }));

  const stored = await relay.database.query<{ job_id: string; events: string[]; deliveries: string[] }>(
    `select d.job_id, array_agg(distinct e.error_code) as events,
            array_agg(d.error_code order by d.received_at) as deliveries
     from deliveries d join events e using (source, job_id) group by 1`,
  );
  const of = (job: string | undefined) => {
    const { events = [], deliveries: sent = [] } = stored.find(({ job_id }) => job_id === job) ?? {};
    return [events, sent];
  };
  expect(of(jobs[0])).toEqual([['INVALID_INPUT'], ['INVALID_INPUT', 'OTHER']]);
  expect(of(jobs[1])).toEqual([['über 9'], ['über 9']]);
  expect(of(jobs[2])).toEqual([[codes[2]], [codes[2]]]);
  for (const job of jobs.slice(3)) expect(of(job)).toEqual([[null], [null]]);
  expect(
    await relay.database.query("select from events where status = 'processing' and error_code is null"),
  ).toHaveLength(1);
});
