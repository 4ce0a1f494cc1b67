// `npm run torture`: injects faults of all kinds into a whole installation, from a seed, and checks every guarantee. Exit code 0
// if all were kept. Prints how to repeat a run that failed.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { FAULTS, faultsNamed } from '../test/torture/faults/index.ts';
import { commandLine, summary, toResults, writeDocs } from '../test/torture/report.ts';
import { CannotStrikeError, runTorture } from '../test/torture/run.ts';
import { POSTGRES, RABBITMQ, type Servers } from '../test/torture/world.ts';
import { endOnRequest } from './ending.ts';
import { complain, complainOfUsage, explain, say } from './output.ts';
import { ROOT } from './relay.ts';
import { DEPLOY_PROGRAMS } from './services/find-deploy-programs.ts';
import { PATRONI_PROGRAMS } from './services/find-patroni.ts';
import { findPrograms } from './services/find-program.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';

const DEFAULT_MINUTES = 5;
const MAX_SEED = 2 ** 31;

const OPTIONS = {
  seed: { type: 'string' },
  minutes: { type: 'string' },
  faults: { type: 'string' },
  replicas: { type: 'string' },
  senders: { type: 'string' },
  postgres: { type: 'string' },
  rabbitmq: { type: 'string' },
  pace: { type: 'string' },
  out: { type: 'string' },
  'write-docs': { type: 'boolean' },
  list: { type: 'boolean' },
} as const;

type Plan = {
  readonly seed: number;
  readonly minutes: number;
  readonly faults: readonly string[] | undefined;
  readonly replicas: number;
  readonly senders: number;
  readonly servers: Servers;
  readonly pace: number;
  readonly out: string;
  readonly writesDocs: boolean;
};

function readPlan(args: string[]): Plan | undefined {
  const { values } = parseArgs({ args, options: OPTIONS, strict: true });
  if (values.list) {
    for (const { name, what } of FAULTS) say(`${name.padEnd(24)} ${what}`);
    return undefined;
  }
  const seed = number('seed', values.seed) ?? Math.floor(Math.random() * MAX_SEED);
  const stamp = new Date().toISOString().slice(0, 16).replace(':', '');
  return {
    seed,
    minutes: number('minutes', values.minutes) ?? DEFAULT_MINUTES,
    faults: values.faults?.split(','),
    replicas: whole('replicas', values.replicas) ?? 2,
    senders: whole('senders', values.senders) ?? 12,
    servers: {
      postgres: oneOf('postgres', POSTGRES, values.postgres) ?? 'single',
      rabbitmq: oneOf('rabbitmq', RABBITMQ, values.rabbitmq) ?? 'single',
    },
    pace: number('pace', values.pace) ?? 1,
    out: values.out ?? join(ROOT, '.local/torture', `${stamp}-${seed}.json`),
    writesDocs: values['write-docs'] === true,
  };
}

function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`--${name} must be a number above 0`);
}

function oneOf<Word extends string>(
  name: string,
  words: readonly Word[],
  text: string | undefined,
): Word | undefined {
  const found = words.find((word) => word === text);
  if (found !== undefined || text === undefined) return found;
  throw new Error(`--${name} must be ${words.join(' or ')}`);
}

function whole(name: string, text: string | undefined): number | undefined {
  const value = number(name, text);
  if (value === undefined || Number.isSafeInteger(value)) return value;
  throw new Error(`--${name} must be a whole number`);
}

async function main(args: string[]): Promise<number> {
  let plan: Plan | undefined;
  try {
    plan = readPlan(args);
    if (plan?.faults !== undefined) faultsNamed(plan.faults);
  } catch (error) {
    complainOfUsage('npm run torture', error);
    return 2;
  }
  if (plan === undefined) return 0;
  const guard = createGuard();
  const asked = Promise.withResolvers<never>();
  const ending = endOnRequest(guard, () => asked.reject(new Error('asked to end')));
  try {
    // When asked to end, do not wait for faults that heal by themselves.
    return await Promise.race([torture(plan, guard), asked.promise]);
  } catch (error) {
    if (error instanceof CannotStrikeError) {
      complain(`no fault can strike: ${error.message}`);
      return 2;
    }
    if (!ending.isAsked()) complain(`\nthe harness failed: ${explain(error)}\nrepeat: ${commandLine(plan)}`);
    return ending.exitCode() ?? 1;
  } finally {
    await guard.close();
  }
}

/** In the environment, as `npm test` names them. @throws CannotStrikeError if one is missing and cannot be installed */
async function findPatroni(guard: Guard): Promise<void> {
  const programs = [...PATRONI_PROGRAMS, ...DEPLOY_PROGRAMS.filter(({ name }) => name === 'haproxy')];
  const found = await findPrograms(programs, { guard, folder: makeThrowAwayFolder(guard), log: say });
  const missing = programs.find(({ variable }) => !found[variable]);
  if (missing !== undefined) throw new CannotStrikeError(missing.without);
  Object.assign(process.env, found);
}

async function torture(plan: Plan, guard: Guard): Promise<number> {
  say(`seed ${plan.seed}`);
  if (plan.servers.postgres === 'patroni') await findPatroni(guard);
  const run = await runTorture({
    guard,
    seed: plan.seed,
    faults: plan.faults === undefined ? FAULTS : faultsNamed(plan.faults),
    forMs: plan.minutes * 60_000,
    replicas: plan.replicas,
    senders: plan.senders,
    servers: plan.servers,
    pace: plan.pace,
    log: say,
    evidence: plan.out.endsWith('.json') ? plan.out.slice(0, -'.json'.length) : `${plan.out}.logs`,
  });
  const results = toResults(run, plan);
  mkdirSync(dirname(plan.out), { recursive: true });
  writeFileSync(plan.out, `${JSON.stringify(results, null, 2)}\n`);
  for (const line of summary(results)) say(line);
  if (plan.writesDocs) writeDocs(results, join(ROOT, 'docs/reliability.md'));
  say(`written to ${plan.out}`);
  return results.violations.length === 0 ? 0 : 1;
}

process.exit(await main(process.argv.slice(2)));
