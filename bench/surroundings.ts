// Reads what the figures depend on besides the code: hardware, versions, settings. Records no host, path or person.

import { spawnSync } from 'node:child_process';
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type as systemName } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { ROOT } from '../scripts/relay.ts';
import { findPgbench } from './pgbench.ts';
import { POSTGRES_SETTINGS, type Stage } from './stage.ts';

const PACKAGES = ['express', 'raw-body', 'pg', 'kysely', 'amqplib', 'pino', 'zod'] as const;
const SHOWN_SETTINGS = [
  ...Object.keys(POSTGRES_SETTINGS),
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_compression',
  'max_connections',
];
const SYNCS = 200;
const PAGE_BYTES = 8_192;
const GIB = 1_024 ** 3;

export function hardware(folder: string): Record<string, string> {
  const { bsize, bavail } = statfsSync(folder);
  return {
    Processor: cpus()[0]?.model.trim() ?? 'unknown',
    Cores: `${availableParallelism()}, shared by all: subjects, servers, generator and subscriber`,
    Memory: `${(totalmem() / GIB).toFixed(1)} GiB`,
    System: `${systemName()} ${release()}`,
    Disk: `${((bsize * bavail) / GIB).toFixed(0)} GiB free; ${syncMs(folder).toFixed(2)} ms for a write of 8 KiB with fdatasync (median of ${SYNCS})`,
  };
}

/** The time of a write to disk, which each commit waits for. */
function syncMs(folder: string): number {
  const path = join(folder, 'sync-probe');
  const file = openSync(path, 'w');
  try {
    const page = Buffer.alloc(PAGE_BYTES, 1);
    const times = Array.from({ length: SYNCS }, () => {
      const startedMs = performance.now();
      writeSync(file, page, 0, page.length, 0);
      fdatasyncSync(file);
      return performance.now() - startedMs;
    });
    return times.toSorted((a, b) => a - b)[SYNCS / 2] ?? 0;
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

export async function versions({ databases, rabbitmq }: Stage): Promise<Record<string, string>> {
  const [row] = await databases.run('tallyhook', ['show server_version']);
  const packages = PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(', ');
  return {
    Node: process.version,
    Postgres: String(row?.['server_version']),
    RabbitMQ: (await rabbitmq.ctl('version')).trim(),
    pgbench: pgbenchVersion(),
    Packages: packages,
  };
}

export async function settings({ databases }: Stage): Promise<Record<string, string>> {
  const shown = await Promise.all(
    SHOWN_SETTINGS.map(async (name) => {
      const [row] = await databases.run('tallyhook', [`show ${name}`]);
      return `${name} = ${String(row?.[name])}`;
    }),
  );
  return {
    Postgres: `${shown.join(', ')}; defaults for the rest; the same server for all`,
    RabbitMQ: 'as scripts/services/rabbitmq.ts starts it: one node, durable queues, persistent publishes',
    Tallyhook:
      'NODE_ENV=production and its defaults, LOG_LEVEL=info included; output to /dev/null, during floods to a file',
    Others: 'NODE_ENV=production; no logging',
  };
}

/** The commit that is measured, and whether files differ from it. */
export function commit(): string {
  const hash = git('rev-parse', '--short=12', 'HEAD');
  if (hash.status !== 0) return 'unknown';
  const changed = git('status', '--porcelain', '--', 'src', 'migrations').stdout.trim();
  return `${hash.stdout.trim()}${changed === '' ? '' : ' with changes in src or migrations'}`;
}

function git(...args: string[]) {
  return spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
}

function versionOf(name: string): string {
  const text = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function pgbenchVersion(): string {
  try {
    const { program, libraries } = findPgbench();
    const env = { PATH: process.env['PATH'], ...(libraries && { LD_LIBRARY_PATH: libraries }) };
    return spawnSync(program, ['--version'], { encoding: 'utf8', env }).stdout.trim();
  } catch {
    return 'none';
  }
}
