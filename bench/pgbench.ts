// Runs pgbench: 32 clients insert the baseline's row with prepared single-row statements, as fast as Postgres and its protocol
// allow. If the program is missing, it is extracted from Debian's package into .local, without an installation. If that is not
// possible, says why.

import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { ROOT } from '../scripts/relay.ts';
import { createMeter } from './meter.ts';
import type { Figures } from './results.ts';
import type { Stage } from './stage.ts';

export type Pgbench = { readonly program: string; readonly libraries: string };

export const PGBENCH_CLIENTS = 32;
const THREADS = 2;
const PLACE = join(ROOT, '.local/pgbench');
const DOWNLOAD_TIMEOUT_MS = 120_000;

/** A new key each time. The body is sent with each statement. */
const SCRIPT = `\\set n :n + 1
insert into webhook_events (event_key, job_id, status, body)
values (E'default\\072job_' || md5(:client_id::text || '_' || :n::text) || E'\\072completed', 'job_' || :n::text, 'completed',
        convert_to(:body::text, 'UTF8'))
on conflict (event_key) do nothing;
`;

/** @throws Error with the reason why there is none */
export function findPgbench(): Pgbench {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...under('/usr/lib/postgresql'),
    ...under(join(PLACE, 'usr/lib/postgresql')),
  ];
  const program = folders.map((folder) => join(folder, 'pgbench')).find((path) => existsSync(path));
  if (program === undefined) return fetchPgbench();
  return { program, libraries: program.startsWith(PLACE) ? librariesIn(PLACE) : '' };
}

function fetchPgbench(): Pgbench {
  mkdirSync(PLACE, { recursive: true });
  const options = { cwd: PLACE, encoding: 'utf8', timeout: DOWNLOAD_TIMEOUT_MS } as const;
  // The metapackage depends on the package of the right version, and has no program itself.
  const depends = spawnSync('apt-cache', ['depends', 'postgresql'], options).stdout ?? '';
  const name = /postgresql-\d+/.exec(depends)?.[0];
  if (name === undefined) throw new Error('pgbench is missing, and apt knows no package that has it');
  const downloaded = spawnSync('apt-get', ['download', name, 'libpq5'], options);
  if (downloaded.status !== 0) throw new Error('pgbench is missing, and apt-get cannot download it');
  for (const file of readdirSync(PLACE).filter((each) => each.endsWith('.deb'))) {
    const { status } = spawnSync('dpkg-deb', ['-x', file, '.'], options);
    if (status !== 0) throw new Error(`pgbench is missing, and ${file} cannot be unpacked`);
  }
  const [folder] = under(join(PLACE, 'usr/lib/postgresql'));
  if (folder === undefined) throw new Error(`pgbench is missing, and ${name} does not have it`);
  return { program: join(folder, 'pgbench'), libraries: librariesIn(PLACE) };
}

/** `…/15/bin` and others, the newest first. */
function under(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(folder, version, 'bin'));
}

function librariesIn(place: string): string {
  const lib = join(place, 'usr/lib');
  return readdirSync(lib)
    .map((each) => join(lib, each))
    .filter((folder) => readdirSync(folder).some((name) => name.startsWith('libpq.so')))
    .join(delimiter);
}

/** In a database with the baseline's table. The time to open its connections does not count. */
export async function runPgbench(
  stage: Stage,
  pgbench: Pgbench,
  options: { databaseUrl: string; database: string; body: string; seconds: number },
): Promise<Figures> {
  const script = join(stage.folder, 'pgbench.sql');
  writeFileSync(script, SCRIPT);
  const outputFile = join(stage.folder, 'pgbench.txt');
  const output = openSync(outputFile, 'w', 0o600);
  const url = new URL(options.databaseUrl);
  const args = ['-n', '-M', 'prepared', '-c', String(PGBENCH_CLIENTS), '-j', String(THREADS)];
  const connection = ['-h', url.hostname, '-p', url.port, '-U', url.username, url.pathname.slice(1)];
  const variables = ['-D', 'n=0', '-D', `body=${options.body}`];
  await using meter = await createMeter(stage, { roles: {}, database: options.database });
  await meter.begin();
  const running = stage.guard.spawn(
    pgbench.program,
    [...args, '-T', String(options.seconds), '-f', script, ...variables, ...connection],
    {
      cwd: stage.folder,
      env: {
        PATH: process.env['PATH'],
        PGPASSWORD: url.password,
        LC_ALL: 'C',
        ...(pgbench.libraries && { LD_LIBRARY_PATH: pgbench.libraries }),
      },
      ending: { signal: 'SIGTERM', graceMs: 5_000 },
      output,
    },
  );
  closeSync(output);
  const { code } = await running.exited;
  const text = readFileSync(outputFile, 'utf8');
  if (code !== 0)
    throw new Error(`pgbench failed:\n${text.split('\n').filter(isError).slice(0, 3).join('\n')}`);
  const { tps, meanMs, transactions } = parsePgbench(text);
  return {
    acksPerS: tps,
    answerMeanMs: meanMs,
    ...(await meter.end({ window: transactions, inAll: transactions })),
  };
}

const isError = (line: string) => /error|fatal/i.test(line);

/** @throws Error if the text is no report, or reports failed transactions */
export function parsePgbench(text: string): { tps: number; meanMs: number; transactions: number } {
  const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  const found = {
    tps: number(/tps = ([\d.]+) \(without initial connection time\)/),
    meanMs: number(/latency average = ([\d.]+) ms/),
    transactions: number(/transactions actually processed: (\d+)/),
  };
  if (Object.values(found).some(Number.isNaN)) throw new Error(`pgbench reports something else:\n${text}`);
  if (number(/number of failed transactions: (\d+)/) > 0) throw new Error('pgbench had failed transactions');
  return found;
}
