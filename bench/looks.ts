// `npm run bench -- --looks`: what a look at the ledger, a scrape and the overview cost with no event, and with 10 million in a month of
// history. None may grow with the ledger. The broker is stopped, so that the outbox does not change.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../scripts/output.ts';
import { connectDatabase, readLooks } from '../src/ledger/index.ts';
import { newToken } from '../test/support/operators.ts';
import { createTestLog } from '../test/support/test-log.ts';
import { type Api, medianOf, withService } from './audit.ts';
import { signIn } from './audit-pages.ts';
import { SEEDED, seedHistory } from './audit-seed.ts';
import type { Stage } from './stage.ts';

export type LooksScale = { readonly events: number; readonly asked: number; readonly scraped: number };

export const LOOKS_FULL: LooksScale = { events: 10_000_000, asked: 51, scraped: 11 };
export const LOOKS_QUICK: LooksScale = { events: 100_000, asked: 11, scraped: 3 };

type Times = Readonly<Record<'look' | 'scrape' | 'overview', number>>;
export type LooksReport = { readonly scale: LooksScale; readonly none: Times; readonly full: Times };

/** Longer than a look is shared, so that each scrape makes one. */
const LOOK_AGE_MS = 5_500;
/** Of each 20 deliveries of the history 16 are events. */
const DELIVERIES_PER_EVENT = 20 / 16;
const GROUP = 20;

export async function measureLooks(
  stage: Stage,
  scale: LooksScale,
  progress: Progress,
): Promise<LooksReport> {
  await stage.rabbitmq.stop();
  const measureIn = async (database: string, fill: () => Promise<void>) => {
    await stage.databases.create(database);
    try {
      await fill();
      return await progress.during(`looks in ${database}`, () => measure(stage, database, scale));
    } finally {
      await stage.databases.drop(database);
    }
  };
  try {
    const none = await measureIn('bench_looks_none', async () => {});
    const full = await measureIn('bench_looks_full', () =>
      progress.during(`a history of ${scale.events.toLocaleString('en')} events`, () =>
        fillHistory(stage, 'bench_looks_full', scale),
      ),
    );
    return { scale, none, full };
  } finally {
    await stage.rabbitmq.start();
  }
}

/** Rows of one column, for a `values`. */
const listed = (values: object) =>
  Object.values(values)
    .map((value) => `('${value}')`)
    .join(', ');

/** Beside the history: what a look reads of the sources, two days of counts by the minute and the last match of each secret. */
async function fillHistory({ databases }: Stage, database: string, { events }: LooksScale): Promise<void> {
  const count = Math.ceil((events * DELIVERIES_PER_EVENT) / GROUP) * GROUP;
  await seedHistory((statements) => databases.run(database, statements), { count, logged: false });
  const { sources, secrets } = SEEDED;
  await databases.run(database, [
    `insert into secret_matches
     select source, fingerprint, now() - case when fingerprint = '${secrets.old}' then interval '10 days' else interval '1 minute' end
     from (values ${listed(sources)}) s (source), (values ${listed(secrets)}) f (fingerprint)`,
    `insert into rollups
     select date_trunc('minute', now()) - make_interval(mins => minute), measure, source,
       case measure when 'answer' then 'accepted' else 'confirmed' end, bucket, 10
     from generate_series(0, 2879) minute, (values ('answer'), ('lag')) m (measure), generate_series(20, 39) bucket,
       (values ${listed(sources)}) s (source)`,
    'vacuum (analyze) secret_matches, rollups',
  ]);
}

async function measure(stage: Stage, database: string, { asked, scraped }: LooksScale): Promise<Times> {
  const connection = connectDatabase({
    url: stage.databases.url(database),
    name: 'bench',
    connections: 1,
    statementTimeoutMs: 60_000,
    lockTimeoutMs: 60_000,
    queryTimeoutMs: 61_000,
    log: createTestLog().log,
  });
  try {
    const look = await medianOf(asked, () => readLooks(connection.db));
    const others = await withService(stage, database, (api) =>
      measureService(stage, database, api, { asked, scraped }),
    );
    return { look, ...others };
  } finally {
    await connection.close();
  }
}

async function measureService(
  stage: Stage,
  database: string,
  { operators }: Api,
  { asked, scraped }: Pick<LooksScale, 'asked' | 'scraped'>,
): Promise<Omit<Times, 'look'>> {
  const { value } = await newToken(
    { url: stage.databases.url(database) },
    { role: 'admin', environment: 'live' },
  );
  const read = async (path: string, headers: Readonly<Record<string, string>>) => {
    const response = await fetch(`${operators}${path}`, { headers, redirect: 'manual' });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
  };
  const scrape = await medianOf(
    scraped,
    () => read('/metrics', { authorization: `Bearer ${value}` }),
    () => sleep(LOOK_AGE_MS),
  );
  const cookie = await signIn(operators, value);
  const overview = await medianOf(asked, () => read('/console', { cookie }));
  return { scrape, overview };
}

const ms = (value: number) => value.toFixed(1);

export function renderLooks({ scale, none, full }: LooksReport): string {
  const row = (name: string, of: keyof Times) =>
    `| ${name} | ${ms(none[of])} | ${ms(full[of])} | ${(full[of] / none[of]).toFixed(2)} |`;
  return [
    `| median, ms | no event | ${scale.events.toLocaleString('en')} events | ratio |`,
    '|---|---:|---:|---:|',
    row('a look', 'look'),
    row('a scrape with a look of its own', 'scrape'),
    row('the overview of the console', 'overview'),
  ].join('\n');
}
