// Strikes one fault after the other and watches what a real Prometheus says: the expected alerts fire, once each, and resolve after the
// repair; the others stay silent.

import type { Guard } from '../../scripts/services/guard.ts';
import { cliWith } from '../support/cli.ts';
import { commandsOf } from '../support/runbook.ts';
import { paste } from '../support/shell.ts';
import { pause, until } from '../support/until.ts';
import type { Faster } from './faster.ts';
import type { Fault } from './faults.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';
import { type Stage, startStage } from './stage.ts';

export type Outcome = {
  readonly fault: string;
  readonly expected: readonly string[];
  /** Since the fault, and since its repair. Undefined: not within the limit. */
  readonly firedS: number | undefined;
  readonly resolvedS: number | undefined;
  /** What else fired and may not, and what fired more than once at a time. */
  readonly others: readonly string[];
  /** Why the fault could not strike or be repaired. */
  readonly error?: string;
};

/** Another replica leads within this time, and Prometheus has as many samples of each. */
const LEAST_S = 10;
const POLL_MS = 500;
/** The longest window is an hour. */
const LIMIT_MS = 120_000;

export const isGood = ({ firedS, resolvedS, others, error }: Outcome): boolean =>
  firedS !== undefined && resolvedS !== undefined && others.length === 0 && error === undefined;

export async function tryAlerts(options: {
  guard: Guard;
  /** A Prometheus. */
  program: string;
  faults: readonly Fault[];
  /** How much shorter all times are. */
  by: number;
  log: (line: string) => void;
  /** Gets what the runbook's commands print while an alert fires; then they are run. */
  show?: (text: string) => void;
  onOutcome?: (outcome: Outcome) => void;
}): Promise<Outcome[]> {
  const { guard, program, faults, log, show, onOutcome = () => {} } = options;
  const stage = await startStage({ guard, log });
  const faster: Faster = { by: options.by, leastS: LEAST_S };
  const prometheus = await startPrometheus({
    guard,
    program,
    folder: stage.folder,
    targets: stage.replicas.map(({ operators }) => operators),
    scraperToken: stage.scraperToken,
    faster,
  });
  await pause(LEAST_S * 1_000); // each counter has been seen for a window
  const outcomes: Outcome[] = [];
  for (const fault of faults) {
    const outcome = await tryOne(fault, { stage, prometheus, show });
    outcomes.push(outcome);
    onOutcome(outcome);
  }
  return outcomes;
}

/** @returns how long it took, undefined if longer than the limit */
const within = (what: string, ask: () => Promise<true | undefined>, sinceMs: number) =>
  until(what, ask, { limitMs: LIMIT_MS, pollMs: POLL_MS }).then(
    () => (performance.now() - sinceMs) / 1_000,
    () => undefined,
  );

async function tryOne(
  fault: Fault,
  {
    stage,
    prometheus,
    show,
  }: { stage: Stage; prometheus: Prometheus; show: ((text: string) => void) | undefined },
): Promise<Outcome> {
  const { name, fires, may = [] } = fault;
  const allowed = new Set<string>([...fires, ...may]);
  const others = new Set<string>();
  const seen = new Set<string>();
  async function look() {
    const firing = await prometheus.firing();
    for (const [condition, count] of firing) {
      seen.add(condition);
      if (!allowed.has(condition)) others.add(condition);
      if (count > 1) others.add(`${condition} × ${count}`);
    }
    return firing;
  }
  const result = { fault: name, expected: fires };
  try {
    const struckMs = performance.now();
    const repair = await fault.strike(stage);
    const haveFired = async () => {
      await look();
      return fires.every((condition) => seen.has(condition)) || undefined;
    };
    const firedS = await within('the alerts fire', haveFired, struckMs);
    if (show !== undefined && firedS !== undefined)
      for (const condition of fires) show(await followRunbook(condition, stage));
    const repairedMs = performance.now();
    await repair();
    const isOver = async () => (await look()).size === 0 || undefined;
    const resolvedS = await within('they resolve', isOver, repairedMs);
    return { ...result, firedS, resolvedS, others: [...others] };
  } catch (error) {
    return { ...result, firedS: undefined, resolvedS: undefined, others: [...others], error: String(error) };
  }
}

/** @returns the commands under this heading of docs/runbook.md, each with what it prints on a terminal, or why it fails */
async function followRunbook(condition: string, stage: Stage): Promise<string> {
  const { operators, token, folder } = { ...stage.operator, folder: stage.folder };
  const cli = cliWith({ TALLYHOOK_URL: operators, TALLYHOOK_TOKEN: token });
  const run = async (line: string) => {
    const [program, ...args] = line.split(' ');
    if (program === 'tallyhook') return (await cli.onTerminal(args)).screen;
    return paste(line, { operators, token, folder }).catch(({ stdout }: { stdout: string }) => stdout);
  };
  const shown = [`### ${condition}`];
  for (const line of commandsOf(condition)) shown.push(`$ ${line}`, (await run(line)).trimEnd());
  return shown.join('\n');
}
