// Makes the servers slower for a while, for all subjects alike: commits of Postgres that take longer, as with a network disk, and
// both servers some way from the subject, as in a data centre. What it adds is measured before anything else is.
//
// Postgres itself waits (slow/postgres.c), since a proxy in front of it would cost the baseline, which asks twice for each event, a
// third of its CPU time. RabbitMQ is behind a proxy in a process of its own, which carries one connection.

import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from '../scripts/output.ts';
import { answers, findFreePort } from '../scripts/services/ports.ts';
import { compile, findCompiler } from './compiler.ts';
import type { Bench, FarBroker } from './runs.ts';
import type { Stage } from './stage.ts';

const PROBES = 31;
const US = 1_000;
/** It writes one record of WAL, and waits for it at its commit. */
const COMMIT = "select pg_logical_emit_message(true, 'bench', 'probe')";
const PROXY_START_MS = 5_000;
const POLL_MS = 20;

/** Skips the work where nothing can be compiled. @throws Error if commits do not take longer afterwards */
export async function withSlowCommits(
  bench: Bench,
  delayMs: number,
  work: () => Promise<void>,
): Promise<void> {
  const compiler = await compilerOrSkip(bench, `commits that take ${delayMs} ms longer`);
  if (compiler === undefined) return;
  const slowness = { variable: 'COMMIT_DELAY_US', delayMs, probe: COMMIT };
  await withSlowPostgres(bench.stage, { compiler, slowness }, work);
}

/** Skips the work where nothing can be compiled. @throws Error if Postgres does not answer later afterwards */
export async function withDistance(
  bench: Bench,
  delayMs: number,
  work: (broker: FarBroker) => Promise<void>,
): Promise<void> {
  const compiler = await compilerOrSkip(bench, `servers ${delayMs} ms away`);
  if (compiler === undefined) return;
  const slowness = { variable: 'REQUEST_DELAY_US', delayMs, probe: 'select 1' };
  await withSlowPostgres(bench.stage, { compiler, slowness }, async () => {
    await using proxy = await startBrokerProxy(bench.stage, { compiler, delayMs });
    await work(proxy);
  });
}

async function compilerOrSkip({ stage, skip }: Bench, what: string): Promise<string | undefined> {
  try {
    return await findCompiler({
      guard: stage.guard,
      logFile: join(stage.folder, 'compiler.log'),
      log: say,
    });
  } catch (error) {
    skip(`${what}: ${(error as Error).message}`);
    return undefined;
  }
}

type Slowness = { readonly variable: string; readonly delayMs: number; readonly probe: string };

async function withSlowPostgres(
  stage: Stage,
  { compiler, slowness }: { compiler: string; slowness: Slowness },
  work: () => Promise<void>,
): Promise<void> {
  const { variable, delayMs, probe } = slowness;
  // In the server's own folder, which its account can enter.
  const library = compile(compiler, { source: 'postgres', kind: 'library', folder: stage.postgres.dir });
  await stage.restartPostgres({ LD_PRELOAD: library, [variable]: String(delayMs * US) });
  try {
    const ms = await medianMs(stage, probe);
    if (ms < delayMs) throw new Error(`Postgres is not slower: ${ms.toFixed(2)} ms for ${probe}`);
    await work();
  } finally {
    await stage.restartPostgres();
  }
}

async function medianMs({ databases }: Stage, probe: string): Promise<number> {
  const client = await databases.connect('tallyhook');
  try {
    const times: number[] = [];
    for (let each = 0; each < PROBES; each++) {
      const startedMs = performance.now();
      await client.query(probe);
      times.push(performance.now() - startedMs);
    }
    return times.toSorted((a, b) => a - b)[(PROBES - 1) / 2] ?? 0;
  } finally {
    await client.end();
  }
}

async function startBrokerProxy(
  stage: Stage,
  { compiler, delayMs }: { compiler: string; delayMs: number },
): Promise<FarBroker & AsyncDisposable> {
  const program = compile(compiler, { source: 'proxy', kind: 'program', folder: stage.folder });
  const port = await findFreePort();
  const output = openSync(join(stage.folder, 'proxy.log'), 'a', 0o600);
  const args = [port, stage.rabbitmq.port, delayMs * US].map(String);
  const running = stage.guard.spawn(program, args, {
    cwd: stage.folder,
    env: {},
    ending: { signal: 'SIGTERM', graceMs: 1_000 },
    output,
  });
  closeSync(output);
  const deadlineMs = performance.now() + PROXY_START_MS;
  while (!(await answers(port))) {
    if (running.hasExited() || performance.now() > deadlineMs) throw new Error('the proxy does not start');
    await sleep(POLL_MS);
  }
  const url = new URL(stage.rabbitmq.url);
  url.port = String(port);
  return {
    url: url.href,
    pid: running.pid,
    [Symbol.asyncDispose]: async () => void (await running.end()),
  };
}
