// `npm run bench -- --audit`: measures the operators' requests over HTTP on a ledger with a month of history: the median time of
// each list and of a job's story, an export's rate and memory, and what these cost the intake at the same time. The broker is
// stopped, so that only Postgres and the service are measured, and the outbox does not change.

import { NO_LOG, startRelay } from '../scripts/relay.ts';
import type { Progress } from '../scripts/output.ts';
import { findFreePort } from '../scripts/services/ports.ts';
import { newToken } from '../test/support/operators.ts';
import { AUDIT_CASES, type AuditCase } from './audit-cases.ts';
import { measurePages, pagesToAsk, signIn } from './audit-pages.ts';
import type { AuditReport, AuditScale } from './audit-report.ts';
import { seedHistory } from './audit-seed.ts';
import { SMALLEST_BODY_BYTES } from './load/notifications.ts';
import { measureLoad } from './measure.ts';
import type { Stage } from './stage.ts';
import { newRun } from './subscribing.ts';
import { memoryOf } from './usage.ts';

export const AUDIT_FULL: AuditScale = { deliveries: 1_000_000, asked: 51, rounds: 3, loadS: 10 };
export const AUDIT_QUICK: AuditScale = { deliveries: 100_000, asked: 11, rounds: 1, loadS: 3 };

const DATABASE = 'bench_audit';
const WARM_UP = 5;
/** Page 1,000 of a list with 50 items a page. */
const DEEP_ITEMS = 50_000;
const SAMPLE_MS = 50;
/** Operators while the intake is loaded. Each sends its next request when it has its answer. */
const OPERATORS = 2;
const LOAD_CONNECTIONS = 64;

export type Api = {
  readonly get: (path: string) => Promise<Response>;
  readonly operators: string;
  readonly pid: number;
  readonly port: number;
};

export async function measureAudit(
  stage: Stage,
  scale: AuditScale,
  progress: Progress,
): Promise<AuditReport> {
  await stage.rabbitmq.stop();
  await stage.databases.create(DATABASE);
  try {
    await progress.during(`a history of ${scale.deliveries.toLocaleString('en')} deliveries`, () =>
      seedHistory((statements) => stage.databases.run(DATABASE, statements), { count: scale.deliveries }),
    );
    const lists = await progress.during('lists', () =>
      withService(stage, DATABASE, (api) => measureLists(api, scale)),
    );
    const storyMs = await progress.during('stories', () =>
      withService(stage, DATABASE, (api) => measureStories(stage, api, scale)),
    );
    const pages = await progress.during('pages of the console', () =>
      withService(stage, DATABASE, (api) => measureConsole(stage, api, scale)),
    );
    const exported = await progress.during('exports', () => withService(stage, DATABASE, measureExports));
    const intake = await progress.during('intake, alone and beside', () => measureIntake(stage, scale));
    return { scale, lists, storyMs, pages, ...exported, intake };
  } finally {
    await stage.databases.drop(DATABASE);
    await stage.rabbitmq.start();
  }
}

/** Starts a service on the database, without a limit of requests. */
export async function withService<T>(stage: Stage, name: string, work: (api: Api) => Promise<T>): Promise<T> {
  const [port, operatorPort] = [await findFreePort(), await findFreePort()];
  const relay = await startRelay(stage.guard, {
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      OPERATOR_PORT: String(operatorPort),
      API_REQUESTS_PER_MINUTE: '1000000',
      DATABASE_URL: stage.databases.url(name),
      AMQP_URL: stage.rabbitmq.url,
      SIGNING_SECRETS: stage.secret,
    },
    logFile: NO_LOG,
  });
  try {
    const database = { url: stage.databases.url(name) };
    const { value } = await newToken(database, { role: 'auditor', environment: 'live' });
    const authorization = `Bearer ${value}`;
    const operators = `http://127.0.0.1:${operatorPort}`;
    const get = (path: string) => fetch(`${operators}/api/v1${path}`, { headers: { authorization } });
    return await work({ get, operators, pid: relay.pid, port });
  } finally {
    await relay.end();
  }
}

const pathOf = ({ list, query }: AuditCase, more: Record<string, string> = {}) =>
  `/${list}?${new URLSearchParams({ ...query, ...more }).toString()}`;

async function measureLists(api: Api, { asked }: AuditScale): Promise<AuditReport['lists']> {
  const measured: AuditReport['lists'][number][] = [];
  for (const each of AUDIT_CASES) {
    const firstMs = await medianOf(asked, () => ask(api, pathOf(each)));
    const cursor = await deepCursor(api, each);
    const deepMs =
      cursor === undefined ? undefined : await medianOf(asked, () => ask(api, pathOf(each, { cursor })));
    measured.push({ ...each, firstMs, deepMs });
  }
  return measured;
}

type Page = { items: unknown[]; next_cursor: string | null };

async function ask(api: Api, path: string): Promise<Page> {
  const response = await api.get(path);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text) as Page;
}

/** Found as an operator finds it, page by page, in the largest pages. Undefined for a list that ends before. */
async function deepCursor(api: Api, each: AuditCase): Promise<string | undefined> {
  let cursor: string | null = null;
  for (let items = 0; items < DEEP_ITEMS; ) {
    const page: Page = await ask(api, pathOf(each, { limit: '200', ...(cursor !== null && { cursor }) }));
    if (page.next_cursor === null || page.items.length < 200) return undefined;
    items += page.items.length;
    cursor = page.next_cursor;
  }
  return cursor ?? undefined;
}

async function medianOf(times: number, work: () => Promise<unknown>): Promise<number> {
  const [only] = await mediansOf(times, [work]);
  return only;
}

/** Milliseconds, after a warm-up. All are done in turn; `before` each turn, uncounted. */
export async function mediansOf<Works extends readonly (() => Promise<unknown>)[]>(
  times: number,
  works: readonly [...Works],
  before: () => Promise<unknown> = async () => {},
): Promise<{ [Work in keyof Works]: number }> {
  for (let index = 0; index < WARM_UP; index += 1) for (const work of works) await work();
  const took = works.map((): number[] => []);
  for (let turn = 0; turn < times; turn += 1) {
    await before();
    for (const [index, work] of works.entries()) {
      const startedMs = performance.now();
      await work();
      took[index]?.push(performance.now() - startedMs);
    }
  }
  return took.map(median) as { [Work in keyof Works]: number };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function measureStories(stage: Stage, api: Api, { asked }: AuditScale): Promise<number> {
  const rows = await stage.databases.run(DATABASE, [
    // Jobs from all over the month, since ids are random.
    `select source, job_id from jobs where job_id >= 'job_8' order by source, job_id limit ${asked + WARM_UP}`,
  ]);
  const jobs = rows.map(
    ({ source, job_id }) =>
      `/jobs/${encodeURIComponent(String(source))}/${encodeURIComponent(String(job_id))}`,
  );
  let next = 0;
  return medianOf(asked, () => ask(api, jobs[next++ % jobs.length] ?? ''));
}

/** As an admin, who sees all pages. */
async function measureConsole(
  stage: Stage,
  { operators }: Api,
  { asked }: AuditScale,
): Promise<AuditReport['pages']> {
  const { value } = await newToken(
    { url: stage.databases.url(DATABASE) },
    { role: 'admin', environment: 'live' },
  );
  const [row] = await stage.databases.run(DATABASE, [
    `select e.source, e.job_id, e.delivery_id, e.source || ':' || e.job_id || ':' || e.status as event_id
     from events e where e.status = 'completed' and e.job_id >= 'job_8' order by e.job_id limit 1`,
  ]);
  const text = (name: string) => String(row?.[name]);
  const shown = {
    source: text('source'),
    jobId: text('job_id'),
    deliveryId: text('delivery_id'),
    eventId: text('event_id'),
  };
  const cookie = await signIn(operators, value);
  return measurePages(operators, { cookie, pages: pagesToAsk(shown), asked, warmUp: WARM_UP });
}

async function measureExports(api: Api): Promise<Pick<AuditReport, 'exports' | 'idleMiB' | 'peakMiB'>> {
  await ask(api, '/deliveries');
  const idleMiB = memoryOf([api.pid]).nowMiB;
  let peakMiB = idleMiB;
  const sampling = setInterval(() => (peakMiB = Math.max(peakMiB, memoryOf([api.pid]).nowMiB)), SAMPLE_MS);
  const exports: AuditReport['exports'][number][] = [];
  try {
    for (const format of ['ndjson', 'csv']) {
      const startedMs = performance.now();
      const { items, bytes } = await drain(await api.get(`/export?list=deliveries&format=${format}`));
      exports.push({
        format,
        items: items - (format === 'csv' ? 1 : 0),
        seconds: (performance.now() - startedMs) / 1_000,
        mib: bytes / 1_024 ** 2,
      });
    }
  } finally {
    clearInterval(sampling);
  }
  return { exports, idleMiB, peakMiB };
}

/** Counts lines and bytes, and keeps neither. */
async function drain(response: Response): Promise<{ items: number; bytes: number }> {
  if (response.status !== 200 || response.body === null) throw new Error(`export: ${response.status}`);
  let [items, bytes] = [0, 0];
  for await (const chunk of response.body) {
    const part = chunk as Uint8Array;
    bytes += part.length;
    for (let at = part.indexOf(10); at !== -1; at = part.indexOf(10, at + 1)) items += 1;
  }
  return { items, bytes };
}

async function measureIntake(stage: Stage, scale: AuditScale): Promise<AuditReport['intake']> {
  const rates = { alone: [] as number[], asked: [] as number[], exporting: [] as number[] };
  for (let round = 0; round < scale.rounds; round += 1) {
    for (const beside of ['alone', 'asked', 'exporting'] as const) {
      rates[beside].push(
        await withService(stage, DATABASE, (api) => intakeBeside(stage, scale, { api, beside })),
      );
    }
  }
  return { alone: median(rates.alone), asked: median(rates.asked), exporting: median(rates.exporting) };
}

async function intakeBeside(
  stage: Stage,
  scale: AuditScale,
  { api, beside }: { api: Api; beside: keyof AuditReport['intake'] },
): Promise<number> {
  const state = { isOver: false };
  const others = beside === 'alone' ? [] : operatorsAt(api, beside, () => state.isOver);
  try {
    const { acksPerS = 0 } = await measureLoad(stage, {
      load: {
        loop: { kind: 'closed', concurrency: LOAD_CONNECTIONS },
        bodyBytes: SMALLEST_BODY_BYTES,
        duplicateShare: 0,
        warmUpS: 2,
        durationS: scale.loadS,
        stock: (scale.loadS + 2) * 8_000,
      },
      run: newRun(),
      ports: [api.port],
      subject: { name: 'tallyhook', pids: [api.pid] },
    });
    return acksPerS;
  } finally {
    state.isOver = true;
    await Promise.all(others);
  }
}

function operatorsAt(api: Api, beside: 'asked' | 'exporting', isOver: () => boolean): Promise<void>[] {
  if (beside === 'exporting') return [untilOver(isOver, () => drainWhile(api, isOver))];
  return Array.from({ length: OPERATORS }, (_, index) => {
    let next = index;
    return untilOver(isOver, () => {
      next += 1;
      return ask(api, pathOf(AUDIT_CASES[next % AUDIT_CASES.length] as AuditCase));
    });
  });
}

async function untilOver(isOver: () => boolean, work: () => Promise<unknown>): Promise<void> {
  while (!isOver()) await work();
}

async function drainWhile(api: Api, isOver: () => boolean): Promise<void> {
  const response = await api.get('/export?list=deliveries');
  if (response.status !== 200 || response.body === null) throw new Error(`export: ${response.status}`);
  for await (const _ of response.body) if (isOver()) return;
}
