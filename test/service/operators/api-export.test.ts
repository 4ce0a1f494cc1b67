import { afterAll, beforeAll, expect, test } from 'vitest';
import { isTokenValid } from '../../../src/operators/kernel/access/tokens.queries.ts';
import { createExportOperations } from '../../../src/operators/export/operations.ts';
import type { CallContext, Read, Reply } from '../../../src/operators/kernel/operation/operation.ts';
import { parseLines } from '../../support/cli.ts';
import { createHistory, type History } from '../../support/history.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { OUTBOX } from '../../support/outbox.ts';
import { newToken, operators, type Operators } from '../../support/operators.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { deliver, newJobId } from '../../support/sender.ts';
import { createTestLog, startTestService, type TestService } from '../../support/service.ts';

type Item = Record<string, unknown>;

let history: History;
let service: TestService;
let api: Operators;
beforeAll(async () => {
  history = await createHistory(6_000);
  await holdOutbox(history.database);
  service = await startTestService({ database: history.database });
  api = await operators(service, { role: 'auditor' });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await history[Symbol.asyncDispose]();
});

test.each(['jobs', 'deliveries', 'events', 'publications', 'quarantine', 'outbox'])(
  'the export of %s is its list, whole',
  async (list) => {
    const tables = {
      quarantine: `deliveries where outcome = 'quarantined'`,
      outbox: OUTBOX,
      publications: `${PUBLICATIONS} p`,
    };
    const table = tables[list as keyof typeof tables] ?? list;
    const [row] = await history.database.query<{ count: number }>(
      `select count(*)::int as count from ${table}`,
    );
    const first = await api.get<{ items: Item[] }>(`/${list}?limit=200`);

    const { status, headers, text } = await api.get(`/export?list=${list}`);

    expect([status, text.slice(0, 200)]).toEqual([200, text.slice(0, 200)]);
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    const exported = parseLines(text);
    expect(exported).toHaveLength(row?.count ?? 0);
    expect(exported.length).toBeGreaterThan(10);
    expect(exported.slice(0, first.body.items.length)).toEqual(first.body.items);
  },
);

test('an export with bodies has each that is kept, as text or in base64, and says so in the operator log', async () => {
  const source = newJobId();
  const bodies = [
    Buffer.from('{"job_id":"ä","n":1}'),
    Buffer.from([0xff, 0x00]),
    Buffer.from('=cmd()'),
    null,
  ];
  await history.database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, reason, path, headers, body_bytes, body)
     select gen_random_uuid(), date_trunc('day', now()) + n * interval '1 ms', $1, 'quarantined', 202, 'unknown status', '/webhooks', '{}',
            length(body), body
     from unnest($2::bytea[]) with ordinality as b (body, n)`,
    [source, bodies],
  );
  for (const list of ['deliveries', 'quarantine']) {
    const { status, text } = await api.get(`/export?list=${list}&bodies=true&source=${source}`);
    expect(status).toBe(200);
    expect(parseLines(text).map(({ body, body_base64 }) => [body, body_base64])).toEqual([
      [null, null],
      ['=cmd()', null],
      [null, '/wA='],
      ['{"job_id":"ä","n":1}', null],
    ]);
  }
  const { text: csv } = await api.get(`/export?list=deliveries&format=csv&bodies=true&source=${source}`);
  expect(csv.split('\r\n')[0]).toMatch(/,body,body_base64$/);
  expect(csv).toContain(`,'=cmd(),`);
  const without = await api.get(`/export?list=deliveries&source=${source}`);
  expect(parseLines(without.text)[0]).not.toHaveProperty('body');
  const logged = await history.database.query<{ detail: object }>(
    `select detail::jsonb as detail from operator_log where action = 'export' and source = $1 order by id`,
    [source],
  );
  expect(logged.map(({ detail }) => 'bodies' in detail)).toEqual([true, true, true, false]);
  for (const list of ['jobs', 'events', 'outbox', 'operator-log'])
    expect(await api.get(`/export?list=${list}&bodies=true`)).toMatchObject({
      status: 400,
      body: { message: 'bodies: only deliveries and quarantine have some' },
    });
});

test('an export with bodies that are more than fit into memory at one time has all of them', async () => {
  const source = newJobId();
  await history.database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, reason, path, headers, body_bytes, body)
     select gen_random_uuid(), date_trunc('day', now()) + n * interval '1 ms', $1, 'quarantined', 202, 'unknown status', '/webhooks', '{}',
            1024 * 1024, convert_to(repeat(n::text, 1024 * 1024), 'UTF8')
     from generate_series(1, 7) n`,
    [source],
  );
  const { text } = await api.get(`/export?list=deliveries&bodies=true&source=${source}`);
  expect(parseLines(text).map(({ body }) => String(body).replace(/^(\d)\1*$/, '$1'))).toEqual([
    '7',
    '6',
    '5',
    '4',
    '3',
    '2',
    '1',
  ]);
});

test('an export takes the filters of its list, and no others', async () => {
  const { text } = await api.get('/export?list=deliveries&outcome=quarantined&source=studio');
  const exported = parseLines(text);
  expect(exported.length).toBeGreaterThan(5);
  expect(new Set(exported.map((item) => `${String(item['outcome'])} ${String(item['source'])}`))).toEqual(
    new Set(['quarantined studio']),
  );
  for (const query of [
    'list=events&outcome=accepted',
    'list=deliveries&late=true',
    'list=deliveries&outcome=nice',
    'list=nothing',
    'list=deliveries&format=xml',
    'list=deliveries&cursor=x',
    'list=jobs&stuck_after=100',
    '',
  ]) {
    const { status, body } = await api.get(`/export?${query}`);
    expect([query, status, body['error']]).toEqual([query, 400, 'invalid_request']);
  }
});

test('a limited token exports its own, a viewer nothing, and the log is for the unlimited', async () => {
  const limited = await operators(service, { role: 'auditor', sources: ['tiny', 'rare'] });
  const { text } = await limited.get('/export?list=deliveries');
  expect(new Set(parseLines(text).map((item) => item['source']))).toEqual(new Set(['tiny', 'rare']));
  expect((await limited.get('/export?list=deliveries&source=default')).status).toBe(403);
  expect((await limited.get('/export?list=operator-log')).status).toBe(403);
  const viewer = await operators(service, { role: 'viewer' });
  expect((await viewer.get('/export?list=jobs')).status).toBe(403);
});

test('an export is written to the operator log, which can be exported itself', async () => {
  await api.get('/export?list=jobs&state=failed&source=default&format=csv');
  const { text } = await api.get('/export?list=operator-log&action=export');
  const own = parseLines(text).filter((line) => line['token_id'] === api.token.id);
  expect(own).toContainEqual(
    expect.objectContaining({
      subject: 'jobs',
      source: 'default',
      detail: { format: 'csv', state: 'failed', source: 'default' },
    }),
  );
});

test('CSV has a header and a row for each item, and no cell that a spreadsheet would run', async () => {
  const job = `=HYPERLINK("http://x","a,b")`;
  await deliver(service.webhooks, `{"job_id":${JSON.stringify(job)},"status":"exploded"}`);
  const query = `list=quarantine&job_id=${encodeURIComponent(job)}`;

  const { headers, text } = await api.get(`/export?${query}&format=csv`);

  expect(headers.get('content-type')).toContain('text/csv');
  const [head, row, end] = text.split('\r\n');
  const [item] = parseLines((await api.get(`/export?${query}`)).text);
  expect(head).toBe(Object.keys(item ?? {}).join(','));
  expect(row).toContain(`,quarantined,202,unknown status,"'=HYPERLINK(""http://x"",""a,b"")",exploded,`);
  expect(row).toContain(',true,');
  expect(end).toBe('');
  const many = await api.get('/export?list=events&format=csv');
  const [counted] = await history.database.query<{ count: number }>(
    'select count(*)::int as count from events',
  );
  expect(many.text.trimEnd().split('\r\n')).toHaveLength((counted?.count ?? 0) + 1);
});

test('a line break in a value stays in its quoted cell, and no formula begins behind it', async () => {
  const job = newJobId();
  await deliver(service.webhooks, { job_id: job, status: 'exploded' });
  const operator = await operators(service, { role: 'operator' });
  const order = { filter: { job_id: job }, note: 'a test\n=1+1\rof team A' };
  expect((await operator.post('/quarantine/discard', order)).body).toMatchObject({ done: 1 });

  const { text } = await api.get(`/export?list=quarantine&job_id=${job}&state=discarded&format=csv`);

  expect(text).toContain(',"a test\n=1+1\rof team A",\r\n');
});

/** Reads a part and then nothing more. */
async function startReading(
  path: string,
  by = api,
): Promise<{ reader: ReadableStreamDefaultReader; stop: () => void }> {
  const aborted = new AbortController();
  const response = await by.fetch(path, { signal: aborted.signal });
  expect(response.status).toBe(200);
  const { body } = response;
  if (body === null) throw new Error('an export has a body');
  const reader = body.getReader();
  await reader.read();
  return { reader, stop: () => aborted.abort() };
}

test('two exports that nobody reads leave room for other tokens, and a third has to wait', async () => {
  await using more = await manyRows();
  expect(more.count).toBe(20_000);
  const first = await startReading('/export?list=deliveries');
  const second = await startReading('/export?list=deliveries');

  const third = await api.get('/export?list=jobs');
  expect([third.status, third.body['error']]).toEqual([429, 'export_busy']);
  expect(third.body['message']).toContain('this token exports 2 lists already');
  const other = await operators(service, { role: 'auditor' });
  expect((await other.get('/export?list=quarantine')).status).toBe(200);
  first.stop();

  await expect.poll(async () => (await api.get('/export?list=quarantine')).status).toBe(200);
  second.stop();
});

test('four exports run at once, and a fifth is told to wait until one has ended', async () => {
  await using more = await manyRows();
  expect(more.count).toBe(20_000);
  const other = await operators(service, { role: 'auditor' });
  const readers = await Promise.all(
    [api, api, other, other].map((by) => startReading('/export?list=deliveries', by)),
  );

  const late = await operators(service, { role: 'auditor' });
  const fifth = await late.get('/export?list=jobs');
  expect([fifth.status, fifth.body['error']]).toEqual([503, 'export_busy']);
  expect(fifth.headers.has('retry-after')).toBe(true);
  readers[0]?.stop();

  await expect.poll(async () => (await late.get('/export?list=quarantine')).status).toBe(200);
  for (const { stop } of readers) stop();
});

test('an export that cannot go on breaks off, so that nobody takes a part for the whole', async () => {
  await using more = await manyRows();
  expect(more.count).toBe(20_000);
  const { reader } = await startReading('/export?list=deliveries');
  await history.database.query('alter table deliveries rename to deliveries_away');
  try {
    const readOn = async () => {
      for (;;) if ((await reader.read()).done) return 'the end';
    };
    await expect(readOn()).rejects.toThrow('terminated');
  } finally {
    await history.database.query('alter table deliveries_away rename to deliveries');
  }
  expect(service.log).toContainEqual(expect.objectContaining({ msg: 'a streamed answer broke off' }));
});

/** Enough that no buffer between the service and a reader holds them. */
async function manyRows(): Promise<AsyncDisposable & { count: number }> {
  const rows = await history.database.query(
    `insert into deliveries (id, received_at, source, outcome, http_status, path, headers)
     select gen_random_uuid(), now(), 'many', 'refused', 413, repeat('/x', 500), '{}' from generate_series(1, 20000)
     returning 1`,
  );
  return {
    count: rows.length,
    [Symbol.asyncDispose]: async () => {
      await history.database.query(`delete from deliveries where source = 'many'`);
    },
  };
}

/** Exports that are started without a server, with times of a test's own. */
function exporting(times: { stalledMs?: number; tokenCheckMs?: number }) {
  const { log, lines: logged } = createTestLog();
  const asked: string[] = [];
  const [read] = createExportOperations({
    connection: history.connection,
    isTokenValid: (tokenId) => {
      asked.push(tokenId);
      return isTokenValid(history.connection, tokenId);
    },
    log,
    ...times,
  }) as [Read];
  const start = async (tokenId = 't') => {
    const context: CallContext = {
      caller: { tokenId, name: 't', role: 'admin', sources: null, remoteAddress: null },
      record: () => Promise.resolve(),
      signal: new AbortController().signal,
    };
    const query = { list: 'deliveries', format: 'ndjson' };
    const { stream } = (await read.run({ params: undefined, query }, context)) as Extract<
      Reply,
      { stream: unknown }
    >;
    return { stream, failure: new Promise<Error>((resolve) => stream.once('error', resolve)) };
  };
  return { start, asked, logged };
}

test('an export stops when its token is revoked, even with a slow reader, and others continue', async () => {
  await using more = await manyRows();
  expect(more.count).toBe(20_000);
  const { start, asked } = exporting({ tokenCheckMs: 50 });
  const [kept, lost] = [await newToken(history.database), await newToken(history.database)];
  const [staying, ending] = [await start(kept.token.id), await start(lost.token.id)];
  ending.stream.read(0);
  await expect.poll(() => asked.filter((id) => id === lost.token.id).length).toBeGreaterThan(2);
  expect(ending.stream.destroyed).toBe(false);

  await history.database.query('update tokens set revoked_at = now() where id = $1', [lost.token.id]);

  expect((await ending.failure).message).toContain('holds no longer');
  expect(ending.stream.readableEnded).toBe(false);
  const rounds = asked.length;
  await expect.poll(() => asked.length).toBeGreaterThan(rounds + 1);
  expect(new Set(asked.slice(rounds))).toEqual(new Set([kept.token.id]));
  expect(staying.stream.destroyed).toBe(false);
  staying.stream.destroy();
});

test('an export goes on while the database does not tell whether its token holds', async () => {
  const { start, asked, logged } = exporting({ tokenCheckMs: 10 });
  await history.database.query('alter table tokens rename to tokens_away');
  try {
    const { stream } = await start('t');
    await expect.poll(() => asked.length).toBeGreaterThan(2);
    await expect.poll(() => logged.length).toBeGreaterThan(1);
    expect(logged[0]).toMatchObject({ msg: 'whether an export may go on is not known', token: 't' });
    expect(stream.destroyed).toBe(false);
    stream.destroy();
  } finally {
    await history.database.query('alter table tokens_away rename to tokens');
  }
});

test('a reader who takes nothing for too long loses his place', async () => {
  await using more = await manyRows();
  expect(more.count).toBe(20_000);
  const { start } = exporting({ stalledMs: 50 });
  const started = [await start(), await start()];
  await expect(start()).rejects.toMatchObject({ code: 'export_busy' });

  for (const { stream, failure } of started) {
    stream.read(0);
    expect((await failure).message).toContain('took nothing');
  }

  const { stream } = await start();
  stream.destroy();
});
