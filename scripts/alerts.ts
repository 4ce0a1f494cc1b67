// `npm run alerts`: runs a real Prometheus with the rules of deploy/prometheus beside a real service, and causes each fault that they
// tell of. Exit code 0 if each alert fired and resolved, and no other one fired.

import { parseArgs } from 'node:util';
import { FAULTS } from '../test/alerts/faults.ts';
import { isGood, type Outcome, tryAlerts } from '../test/alerts/run.ts';
import { endOnRequest } from './ending.ts';
import { complain, complainOfUsage, explain, say } from './output.ts';
import { DEPLOY_PROGRAMS } from './services/find-deploy-programs.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';

const FASTER = 30;

type Plan = { readonly only: string | undefined; readonly by: number; readonly shows: boolean };

function readPlan(args: string[]): Plan {
  const { values } = parseArgs({
    args,
    options: { only: { type: 'string' }, faster: { type: 'string' }, show: { type: 'boolean' } },
  });
  const by = Number(values.faster ?? FASTER);
  if (!(by >= 1)) throw new Error('--faster must be a number from 1');
  if (values.only !== undefined && chosen(values.only).length === 0)
    throw new Error(`no alert is called ${values.only}`);
  return { only: values.only, by, shows: values.show === true };
}

/** The faults that make one of these conditions so. */
const chosen = (only: string | undefined) =>
  FAULTS.filter(({ fires }) => only === undefined || fires.some((name) => only.split(',').includes(name)));

const time = (seconds: number | undefined) => (seconds === undefined ? 'never' : `${Math.round(seconds)} s`);

const row = (cells: readonly string[]) =>
  cells
    .map((cell, index) => cell.padEnd([38, 38, 8, 10, 0][index] ?? 0))
    .join(' ')
    .trimEnd();

const shown = (outcome: Outcome) =>
  row([
    outcome.fault,
    outcome.expected.join(', '),
    time(outcome.firedS),
    time(outcome.resolvedS),
    outcome.error ?? (outcome.others.join(', ') || 'silent'),
  ]);

async function tryAll({ only, by, shows }: Plan, guard: Guard): Promise<number> {
  const found = DEPLOY_PROGRAMS.find(({ name }) => name === 'prometheus');
  const program = await found?.find({
    guard,
    logFile: `${makeThrowAwayFolder(guard)}/install.log`,
    log: say,
  });
  if (found === undefined || program === undefined) {
    complain(found?.without ?? 'there is no Prometheus');
    return 1;
  }
  say(row(['fault', 'alerts', 'fired', 'resolved', 'others']));
  const outcomes = await tryAlerts({
    guard,
    program,
    by,
    faults: chosen(only),
    log: say,
    ...(shows && { show: say }),
    onOutcome: (outcome) => say(shown(outcome)),
  });
  return outcomes.every(isGood) ? 0 : 1;
}

async function main(args: string[]): Promise<number> {
  let plan: Plan;
  try {
    plan = readPlan(args);
  } catch (error) {
    complainOfUsage('npm run alerts', error);
    return 2;
  }
  const guard = createGuard();
  const asked = Promise.withResolvers<never>();
  const ending = endOnRequest(guard, () => asked.reject(new Error('asked to end')));
  try {
    return await Promise.race([tryAll(plan, guard), asked.promise]);
  } catch (error) {
    if (!ending.isAsked()) complain(explain(error));
    return ending.exitCode() ?? 1;
  } finally {
    await guard.close();
  }
}

process.exit(await main(process.argv.slice(2)));
