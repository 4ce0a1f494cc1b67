// The lists of jobs, deliveries, events and publications in the console: filters, pages, and the same from a shell.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { address } from '../../../src/operators/kernel/view/links.ts';
import { type PageAnswer, type Visit, visitConsole } from '../../support/console.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { PUBLICATIONS } from '../../support/publications.ts';
import { completed, deliver, failed, progress } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { paste } from '../../support/shell.ts';
import { openTransaction } from '../../support/transaction.ts';
import { waitFor } from '../../support/waits.ts';
import { cases, IS_SHORT_RUN } from '../../only-in-all.ts';

type ListPage = { items: Record<string, unknown>[]; next_cursor: string | null };

/** Each list, with a text in a row by which it is told from others. */
const LISTS = {
  jobs: (item: Record<string, unknown>) => String(item['job_id']),
  deliveries: (item: Record<string, unknown>) => `/console/deliveries/${String(item['id'])}`,
  events: (item: Record<string, unknown>) => String(item['id']),
  publications: (item: Record<string, unknown>) => String(item['event_id']),
} as const;
type Name = keyof typeof LISTS;
const NAMES = Object.keys(LISTS) as Name[];

async function untilPublished({ database }: TestService, count: number): Promise<void> {
  await waitFor(async () => {
    const found = await database.query(`select from ${PUBLICATIONS} p`);
    if (found.length !== count) throw new Error(`${found.length} of ${count} publications so far`);
  });
}

/** Tests only read what their service has: `filled` has more than a page of each list, `varied` something for each filter. */
const it = test.extend<{ filled: TestService; varied: TestService }>({
  filled: [
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what is needed from it
    async ({}, use) => {
      await using relay = await startTestService();
      for (let at = 0; at < 30; at++) await deliver(relay.webhooks, progress(`job_${100 + at}`, 10));
      await untilPublished(relay, 30);
      await use(relay);
    },
    { scope: 'file' },
  ],
  varied: [
    // oxlint-disable-next-line no-empty-pattern -- as above
    async ({}, use) => {
      await using relay = await startTestService({ exchange: 'test.filters' });
      await deliver(relay.webhooks, progress('job_a', 10));
      await deliver(relay.webhooks, failed('job_a'));
      await deliver(relay.webhooks, failed('job_a', { error_message: 'another' }));
      await deliver(relay.webhooks, progress('job_a', 20));
      await deliver(relay.webhooks, completed('job_b'));
      await untilPublished(relay, 4);
      await use(relay);
    },
    { scope: 'file' },
  ],
});

/** The rows by what tells them apart. */
const rowsOf = (page: PageAnswer, items: Record<string, unknown>[], name: Name) =>
  items.filter(
    (item) =>
      page.text.includes(LISTS[name](item)) || page.links.some(({ href }) => href === LISTS[name](item)),
  );

const nextOf = (page: PageAnswer) => page.links.find(({ text }) => text === 'Next page')?.href;

/** The two lines at the end of each page. */
const linesOf = ({ pres }: PageAnswer) => [pres.at(-2) ?? '', pres.at(-1) ?? ''] as const;

it.for(NAMES)(
  'the list of %s shows the API’s rows page by page, and its state is its address',
  async (name, { filled: relay }) => {
    const visit = await visitConsole(relay, { role: 'viewer' });
    const api = await operators(relay, { role: 'viewer' });
    const { body } = await api.get<ListPage>(`/${name}?limit=200`);
    expect(body.items).toHaveLength(30);

    const first = await visit.get(`/console/${name}`);
    const next = nextOf(first) ?? '';
    const second = await visit.get(next);

    expect(rowsOf(first, body.items, name)).toEqual(body.items.slice(0, 25));
    expect(rowsOf(second, body.items, name)).toEqual(body.items.slice(25));
    expect(nextOf(second)).toBeUndefined();
    expect(second.links).toContainEqual({ href: `/console/${name}`, text: 'First page' });
    // A reload, and the address in a chat.
    const other = await visitConsole(relay, { role: 'auditor' });
    for (const each of [await visit.get(next), await other.get(next)]) {
      expect(rowsOf(each, body.items, name)).toEqual(body.items.slice(25));
    }
    expect((await visit.get(`/console/${name}?cursor=nonsense`)).status).toBe(400);
  },
);

/** Filters of each list that the API takes, with values that match something. */
const FILTERS: Readonly<Record<Name, readonly string[]>> = {
  jobs: [
    'state=failed',
    'state=stuck&stuck_after=60',
    'source=default',
    'job_id=job_a',
    'job_id_prefix=job_',
    'from=24h',
    'to=2030-01-01',
  ],
  deliveries: [
    'outcome=conflict',
    'source=default',
    'status=failed',
    'kind=failed',
    'job_id=job_a',
    'job_id_prefix=job_',
    'error_code=INVALID_INPUT',
    'remote_address=127.0.0.1',
    'from=24h',
    'to=2030-01-01T00:00:00Z',
  ],
  events: [
    'kind=completed',
    'source=default',
    'status=failed',
    'job_id=job_b',
    'job_id_prefix=job_',
    'error_code=INVALID_INPUT',
    'late=true',
    'late=false',
    'from=1h',
  ],
  publications: [
    'result=returned',
    'source=default',
    'event_id=default%3Ajob_a%3Afailed',
    'job_id=job_a',
    'job_id_prefix=job_',
    'from=1h',
  ],
};

it.for(NAMES)(
  'each filter of %s gives the API’s rows, and stays in the form',
  async (name, { varied: relay }) => {
    const visit = await visitConsole(relay, { role: 'viewer' });
    const api = await operators(relay, { role: 'viewer' });
    const all = (await api.get<ListPage>(`/${name}`)).body.items;
    for (const query of FILTERS[name]) {
      const page = await visit.get(`/console/${name}?${query}`);
      // The API takes whole times alone.
      const asked = query
        .replace(/from=\w+$/, 'from=2020-01-01T00:00:00Z')
        .replace(/to=2030-01-01$/, '$&T00:00:00Z');
      const expected = (await api.get<ListPage>(`/${name}?${asked}`)).body.items;
      expect([page.status, rowsOf(page, all, name).length > 0], `with ${query}`).toEqual([
        200,
        expected.length > 0,
      ]);
      for (const item of expected) expect(rowsOf(page, [item], name)).toEqual([item]);
      const form = page.forms.find(({ method, action }) => method === 'get' && action === `/console/${name}`);
      for (const [field, value] of new URLSearchParams(query)) expect(form?.fields[field]).toBe(value);
    }
  },
);

/** What a shell would act on, what would end a quote, and what turns a line around. */
const HOSTILE = [
  `it's; touch pwned #`,
  '$(touch pwned)',
  '`touch pwned`',
  '"; touch pwned; "',
  '-rf',
  '--help',
  'a\nb',
  'a\u202eb',
  '\\',
  '!!',
  '* ~ {a,b}',
  '</pre><script>alert(1)</script>',
];

describe('the lines for a shell', () => {
  it.for(cases(NAMES.slice(0, 1), NAMES.slice(1)))(
    'of the list of %s give the same rows',
    async (name, { filled: relay }) => {
      await using folder = await createFolder();
      const visit = await visitConsole(relay, { role: 'viewer' });
      const shell = { operators: relay.operators, token: visit.value, folder: folder.path('.') };
      const api = await operators(relay);
      const { body } = await api.get<ListPage>(`/${name}?limit=25`);
      const [command, curl] = linesOf(await visit.get(`/console/${name}`));

      const printed = (await paste(command, shell))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(printed).toEqual(body.items);
      expect(JSON.parse(await paste(curl, shell))).toEqual(body);
      const [, second] = linesOf(await visit.get(nextOf(await visit.get(`/console/${name}`)) ?? ''));
      expect((JSON.parse(await paste(second, shell)) as ListPage).items).toHaveLength(5);
    },
  );

  it.skipIf(IS_SHORT_RUN)('do nothing else, whatever a filter holds', async ({ filled: relay }) => {
    await using folder = await createFolder();
    const visit = await visitConsole(relay, { role: 'viewer' });
    const shell = { operators: relay.operators, token: visit.value, folder: folder.path('.') };
    for (const text of HOSTILE) {
      const page = await visit.get(address('/console/deliveries', { job_id: text }));
      expect([page.status, page.text]).toEqual([
        200,
        expect.stringContaining('No deliveries match these filters.'),
      ]);
      expect(page.html).not.toContain('<script>alert');
      const [command, curl] = linesOf(page);
      expect(await paste(command, shell), `with ${text}`).toBe('');
      expect(JSON.parse(await paste(curl, shell)), `with ${text}`).toEqual({ items: [], next_cursor: null });
    }
    expect(await readdir(folder.path('.'))).toEqual([]);
  });
});

test('a list that is empty says what would fill it, and one that is filtered says so', async () => {
  await using relay = await startTestService();
  const visit = await visitConsole(relay, { role: 'viewer' });
  const textOf = async (path: string) => (await visit.get(path)).text;
  expect(await textOf('/console/jobs')).toContain('A job appears here with its first accepted delivery.');
  expect(await textOf('/console/deliveries')).toContain(
    'A delivery appears here for each request of a sender.',
  );
  expect(await textOf('/console/events')).toContain('An event appears here with each accepted delivery.');
  expect(await textOf('/console/publications')).toContain('An attempt to publish appears here');
  expect(await textOf('/console/jobs?state=failed')).toContain('No jobs match these filters.');
  expect(await textOf('/console/outbox?state=parked')).toContain(
    'No events in the outbox match these filters.',
  );
  expect(await textOf('/console/jobs?state=stuck&stuck_after=7200')).toContain(
    'first seen more than 2 hours ago',
  );
});

it('a filter that cannot be keeps the form, with the fault beside its field', async ({ filled: relay }) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  const { html } = await visit.get('/console/jobs?stuck_after=soon&job_id_prefix=job_1');
  expect(html).toContain('name="job_id_prefix" value="job_1"');
  expect(html).toMatch(
    /name="stuck_after" value="soon"[^>]* aria-invalid="true"[^>]*> <span class="fault"[^>]*>write 90s, 15m/,
  );
  expect((await visit.get('/console/jobs?state=stuck&stuck_after=2h')).text).toContain(
    'first seen more than 2 hours ago',
  );
});

it('two filters that cannot be are both marked, in plain words', async ({ filled: relay }) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get('/console/events?kind=nope&from=x');
  expect([page.status, page.text]).toEqual([400, expect.stringContaining('see the filters that are marked')]);
  expect(page.html).toMatch(
    /name="kind" aria-invalid="true" aria-describedby="fault-of-kind">.*id="fault-of-kind">must be one of progress, completed, failed</s,
  );
  expect(page.html).toMatch(/name="from" value="x"[^>]* aria-invalid="true"[^>]*> <span[^>]*>write 2026/);
});

it('what a list does not know is told, and of rows it shows the nearest number', async ({
  filled: relay,
}) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get('/console/deliveries?nonsense=1&limit=100000');
  expect(page.status).toBe(200);
  expect(page.text).toContain('This list has no filter of this name, so it does nothing: nonsense');
  expect(page.html).toMatch(/aria-current="true">100<\/a>/);
  for (const path of ['/console/deliveries?outcome=accepted&limit=50', '/console/quarantine?by=source'])
    expect((await visit.get(path)).text, `of ${path}`).not.toContain('no filter of this name');
});

it('the command line is given times as they were asked for', async ({ filled: relay }) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get('/console/jobs?state=stuck&stuck_after=5m&from=24h');
  const [command = '', curl = ''] = page.pres;
  expect(command).toContain('--stuck-after 5m');
  expect(command).toContain('--from 24h');
  expect(curl).toMatch(/stuck_after=300&from=\d{4}-/);
});

it.for([
  [`/console/search?q=${'x'.repeat(257)}`, 'The search must be at most 256 characters.'],
  ['/console/deliveries/nonsense', 'The id in the address must be a UUID.'],
  ['/console/jobs?cursor=nonsense', 'The cursor in the address is not one of this list with these filters.'],
] as const)('the fault of %s is told in words of the console', async ([path, told], { filled: relay }) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  const page = await visit.get(path);
  expect([page.status, page.text]).toEqual([400, expect.stringContaining(told)]);
});

it('a filter that cannot be is told, and not ignored', async ({ filled: relay }) => {
  const visit = await visitConsole(relay, { role: 'viewer' });
  for (const query of ['outcome=nonsense', 'from=yesterday', 'job_id=%00', `source=${'x'.repeat(64)}`]) {
    const page = await visit.get(`/console/deliveries?${query}`);
    expect([page.status, page.text], `with ${query}`).toEqual([
      400,
      expect.stringContaining('The request is not valid'),
    ]);
  }
});

const secretOf = (source: string) => `a-secret-of-source-${source}-0001`;

test('a token that is limited to sources sees theirs alone', async () => {
  await using folder = await createFolder();
  const sources = await folder.write(
    'sources.json',
    JSON.stringify({ alpha: { secrets: [secretOf('alpha')] }, beta: { secrets: [secretOf('beta')] } }),
  );
  await using relay = await startTestService({ env: { SOURCES_FILE: sources } });
  for (const name of ['alpha', 'beta'])
    await deliver(`${relay.webhooks}/${name}`, completed(`job_${name}`), {
      secret: secretOf(name),
    });
  await untilPublished(relay, 2);
  const visit = await visitConsole(relay, { role: 'auditor', sources: ['alpha'] });
  for (const name of NAMES) {
    const page = await visit.get(`/console/${name}`);
    expect([
      page.text.includes('job_alpha') || name === 'publications',
      page.html.includes('job_beta'),
    ]).toEqual([true, false]);
    expect((await visit.get(`/console/${name}?source=beta`)).status).toBe(403);
  }
  const [beta] = await relay.database.query<{ id: string }>(
    `select id from deliveries where source = 'beta'`,
  );
  const statuses = [
    await visit.get('/console/job?source=beta&job_id=job_beta'),
    await visit.get(`/console/deliveries/${beta?.id}`),
    await visit.post(`/console/deliveries/${beta?.id}/body`),
    await visit.post(`/console/deliveries/${beta?.id}/download`),
    await visit.get('/console/event?id=beta:job_beta:completed'),
    await visit.post('/console/event', { id: 'beta:job_beta:completed' }),
    await visit.post('/console/job', { source: 'alpha', job_id: 'job_alpha', body: beta?.id ?? '' }),
  ].map(({ status }) => status);
  expect(statuses).toEqual([403, 403, 403, 403, 403, 403, 403]);
  expect(await relay.database.query(`select from operator_log where action = 'body.read'`)).toEqual([]);
});

test('a slow query is a page that says what to do, in time', async () => {
  await using relay = await startTestService({ env: { OPERATOR_QUERY_TIMEOUT_MS: '1000' } });
  const visit: Visit = await visitConsole(relay);
  await using lock = await openTransaction(relay.database);
  await lock.query('lock table jobs, deliveries in access exclusive mode');
  const page = await visit.get('/console/jobs');
  expect(page.status).toBe(503);
  expect(page.text).toContain('The database did not answer in time');
  expect(page.links.length).toBeGreaterThan(5); // the frame is there
});
