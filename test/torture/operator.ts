// The operator of the run: polls the outbox, and has returned and parked events published again as docs/runbook.md says: by
// `tallyhook outbox retry`, with a token and through a replica.

import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '../../scripts/program.ts';
import type { Guard } from '../../scripts/services/guard.ts';
import { NO_LOCAL_RUN } from '../support/replica.ts';
import { until } from '../support/until.ts';
import type { World } from './world.ts';
import { OUTBOX } from '../support/outbox.ts';

export type Operator = {
  /**
   * Waits until the outbox has no entry that was accepted before `sinceMs`, and retries returned and parked events
   * meanwhile. @returns how long that took, undefined if it took longer than the limit.
   */
  readonly drain: (sinceMs: number, limitMs: number) => Promise<number | undefined>;
  /** How often the command was run. */
  readonly retries: () => number;
  /** Of a token with the role of an operator. */
  readonly token: () => Promise<string>;
};

type Depth = {
  readonly old: number;
  readonly returned: number;
  /** Why the relay gave up on an event; null if there is none. */
  readonly parked: string | null;
  readonly errors: string | null;
};

const COMMAND_END_MS = 5_000;
const POLL_MS = 100;
/** Without the jobs that decisions.ts has parked an event of for a while. */
const DEPTH = `
with own as (select distinct source, job_id from outbox_held where state = 'parked' and last_error like 'parked by %')
select count(*) filter (where recorded_at <= to_timestamp($1::float8 / 1000))::int as old,
       count(*) filter (where state = 'returned')::int as returned,
       min(last_error) filter (where state = 'parked') as parked,
       string_agg(distinct last_error, e'\n') as errors
from ${OUTBOX} where (source, job_id) not in (select source, job_id from own)`;

/** @param options.onErrors gets the last errors of outbox entries, to be searched for secrets. */
export function createOperator(options: {
  world: World;
  guard: Guard;
  onErrors: (text: string) => void;
}): Operator {
  const { world, guard, onErrors } = options;
  let retries = 0;
  let made: Promise<string> | undefined;

  /** Made once, when the replicas have migrated the ledger. */
  function token(): Promise<string> {
    made ??= makeToken().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  }

  async function run(args: readonly string[], env: NodeJS.ProcessEnv, logFile: string): Promise<void> {
    const output = openSync(join(world.folder, logFile), 'a', 0o600);
    const command = guard.spawn(process.execPath, [MAIN, ...args], {
      cwd: world.folder,
      env: { PATH: process.env['PATH'], ...NO_LOCAL_RUN, ...env },
      ending: { signal: 'SIGTERM', graceMs: COMMAND_END_MS },
      output,
    });
    closeSync(output);
    await command.exited;
  }

  async function makeToken(): Promise<string> {
    const args = ['tokens', 'create', '--name', 'operator of the run', '--role', 'operator'];
    await run(args, { DATABASE_URL: world.postgres.url }, 'operator-token.log');
    const lines = readFileSync(join(world.folder, 'operator-token.log'), 'utf8').trim().split('\n');
    return (JSON.parse(lines.at(-1) ?? '') as { value: string }).value;
  }

  async function retry(...which: string[]): Promise<void> {
    retries += 1;
    const ready = await Promise.all(world.replicas.map((replica) => replica.isReady().catch(() => false)));
    // If none is ready the command fails, and the next poll tries again.
    const replica = world.replicas[Math.max(0, ready.indexOf(true))];
    const env = { TALLYHOOK_URL: replica?.operators, TALLYHOOK_TOKEN: await token() };
    await run(['outbox', 'retry', ...which], env, 'operator.log');
  }

  async function drain(sinceMs: number, limitMs: number): Promise<number | undefined> {
    const startMs = performance.now();
    const isDrained = async () => {
      const [depth] = await world.query<Depth>(DEPTH, [performance.timeOrigin + sinceMs]);
      if (depth === undefined) return undefined;
      onErrors(depth.errors ?? '');
      if (depth.returned > 0) await retry('returned');
      // Not `outbox retry parked`, which would undo the decisions of decisions.ts, too.
      if (depth.parked !== null) await retry('--all', '--state', 'parked', '--reason', depth.parked, '--yes');
      const isEmpty = depth.old + depth.returned === 0 && depth.parked === null;
      return isEmpty ? performance.now() - startMs : undefined;
    };
    return until('the outbox is drained', isDrained, { limitMs, pollMs: POLL_MS }).catch(() => undefined);
  }

  return { drain, retries: () => retries, token };
}
