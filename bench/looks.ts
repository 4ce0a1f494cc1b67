// `npm run bench -- --looks`: what a look at the ledger, a scrape and the overview cost with no event, and with 10 million in a month of
// history. None may grow with the ledger. Both have the partitions of that month and the counts of two days, which depend on time and
// sources, and nothing in the outbox; the broker is stopped, so that this does not change. In the history, what is counted up to a
// limit is beyond that limit.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../scripts/output.ts';
import { connectDatabase, readLooks } from '../src/ledger/index.ts';
import { newToken } from '../test/support/operators.ts';
import { createTestLog } from '../test/support/test-log.ts';
import { mediansOf, withService } from './audit.ts';
import { signIn } from './audit-pages.ts';
import { partitionsOfThePast, SEEDED, seedHistory } from './audit-seed.ts';
import type { Stage } from './stage.ts';

export type LooksScale = { readonly events: number; readonly asked: number; readonly scraped: number };

export const LOOKS_FULL: LooksScale = { events: 10_000_000, asked: 51, scraped: 11 };
export const LOOKS_QUICK: LooksScale = { events: 100_000, asked: 11, scraped: 3 };

type Times = Readonly<Record<'look' | 'scrape' | 'overview', number>>;
export type LooksReport = { readonly scale: LooksScale; readonly none: Times; readonly full: Times };

const NONE = 'bench_looks_none';
const FULL = 'bench_looks_full';

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
  const { databases, rabbitmq } = stage;
  await rabbitmq.stop();
  try {
    for (const name of [NONE, FULL]) await databases.create(name);
    await databases.run(NONE, [...partitionsOfThePast(), ...counts()]);
    await progress.during(`a history of ${scale.events.toLocaleString('en')} events`, () =>
      fillHistory(stage, FULL, scale),
    );
    const [none, full] = await progress.during('looks, scrapes and overviews', () =>
      withAsked(stage, NONE, (empty) => withAsked(stage, FULL, (filled) => compare(empty, filled, scale))),
    );
    return { scale, none, full };
  } finally {
    for (const name of [NONE, FULL]) await databases.drop(name);
    await rabbitmq.start();
  }
}

/** In turn, so that what disturbs the machine for a while disturbs both alike. */
async function compare(
  none: Asked,
  full: Asked,
  { asked, scraped }: LooksScale,
): Promise<readonly [Times, Times]> {
  const look = await mediansOf(asked, [none.look, full.look]);
  const scrape = await mediansOf(scraped, [none.scrape, full.scrape], () => sleep(LOOK_AGE_MS));
  const overview = await mediansOf(asked, [none.overview, full.overview]);
  return [
    { look: look[0], scrape: scrape[0], overview: overview[0] },
    { look: look[1], scrape: scrape[1], overview: overview[1] },
  ];
}

/** Rows of one column, for a `values`. */
const listed = (values: object) =>
  Object.values(values)
    .map((value) => `('${value}')`)
    .join(', ');

async function fillHistory({ databases }: Stage, database: string, { events }: LooksScale): Promise<void> {
  const count = Math.ceil((events * DELIVERIES_PER_EVENT) / GROUP) * GROUP;
  await seedHistory((statements) => databases.run(database, statements), {
    count,
    waiting: 0,
    logged: false,
  });
  await databases.run(database, counts());
}

/** What there is for each source, however much it sent: two days of counts by the minute, and the last match of each secret. */
function counts(): string[] {
  const { sources, secrets } = SEEDED;
  return [
    `insert into secret_matches
     select source, fingerprint, now() - case when fingerprint = '${secrets.old}' then interval '10 days' else interval '1 minute' end
     from (values ${listed(sources)}) s (source), (values ${listed(secrets)}) f (fingerprint)`,
    `insert into rollups
     select date_trunc('minute', now()) - make_interval(mins => minute), measure, source,
       case measure when 'answer' then 'accepted' else 'confirmed' end, bucket, 10
     from generate_series(0, 2879) minute, (values ('answer'), ('lag')) m (measure), generate_series(20, 39) bucket,
       (values ${listed(sources)}) s (source)`,
    'vacuum (analyze) secret_matches, rollups',
  ];
}

/** What is asked of one database, and of a service on it. */
type Asked = Readonly<Record<keyof Times, () => Promise<unknown>>>;

async function withAsked<T>(stage: Stage, database: string, use: (asked: Asked) => Promise<T>): Promise<T> {
  const url = stage.databases.url(database);
  const connection = connectDatabase({
    url,
    name: 'bench',
    connections: 1,
    statementTimeoutMs: 60_000,
    lockTimeoutMs: 60_000,
    queryTimeoutMs: 61_000,
    log: createTestLog().log,
  });
  try {
    return await withService(stage, database, async ({ operators }) => {
      const { value } = await newToken({ url }, { role: 'admin', environment: 'live' });
      const cookie = await signIn(operators, value);
      return use({
        look: () => readLooks(connection.db),
        scrape: () => read(`${operators}/metrics`, { authorization: `Bearer ${value}` }),
        overview: () => read(`${operators}/console`, { cookie }),
      });
    });
  } finally {
    await connection.close();
  }
}

async function read(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(url, { headers, redirect: 'manual' });
  const text = await response.text();
  if (response.status !== 200)
    throw new Error(`${new URL(url).pathname}: ${response.status} ${text.slice(0, 200)}`);
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
