// `tallyhook check`: whether all is well, as one line and an exit code by the conventions of Nagios' plug-ins. Whatever goes wrong is
// UNKNOWN: no other exit code of this program may reach a monitoring that takes 1 for a warning and 2 for an alarm.

import { CONDITIONS } from '../../base/conditions.ts';
import { type AnswerError, type NoAnswerError, UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse, seconds, someOf } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { describeFailure } from '../../terminal/report.ts';
import { counted } from '../../terminal/readable.ts';
import type { Answers, OperatorsClient } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';

const STATES = { OK: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3 } as const;
type State = keyof typeof STATES;

/** Nagios gives a check 60 s. A replica needs some seconds to find out that Postgres does not answer. */
const TIMEOUT_S = 20;
const TIMEOUT_MAX_S = 300;

const NAMES = Object.keys(CONDITIONS);

const OPTIONS = {
  only: option('NAMES', 'only these conditions, separated by commas'),
  ignore: option('NAMES', 'all but these'),
  timeout: option('TIME', `UNKNOWN if the service has not answered by then: 5s, 1m (${TIMEOUT_S}s)`),
  quiet: flag('write nothing where all is OK, for cron'),
} as const;

const help = `Whether all is well, as one line and an exit code for Nagios, Icinga, or cron.

  check
${optionHelp(OPTIONS)}

Its exit codes are those of Nagios' plug-ins, and not those of the other commands:
  0 OK        none of the conditions is so
  1 WARNING   one is so that can wait for working hours
  2 CRITICAL  one is so that somebody has to look at now
  3 UNKNOWN   it cannot be told: the API does not answer in time or refuses the token, or the command is used wrongly

The line is "TALLYHOOK CRITICAL - …", with performance data behind "|"; a line for each condition follows. A condition counts as
soon as it is so; how often it has to be so before somebody is called is for the monitoring to say. The replica at TALLYHOOK_URL answers,
for all replicas. The token needs the role viewer, for all sources.

Conditions (docs/runbook.md): ${NAMES.join(', ')}.`;

type Condition = Answers['conditions']['items'][number];
type Depth = Answers['outboxCounts'];

type Finding = {
  readonly state: State;
  /** Behind the state, on the first line. */
  readonly text: string;
  readonly perfdata?: readonly string[];
  readonly more?: readonly string[];
};

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const isWanted = wanted(values);
  const timeoutS = seconds('--timeout', values.timeout, TIMEOUT_S, { min: 1, max: TIMEOUT_MAX_S });
  const found = await ask(env, io, timeoutS);
  const finding = 'text' in found ? found : judge(found.conditions.filter(isWanted), found.depth);
  if (finding.state === 'OK' && values.quiet === true) return STATES.OK;
  return tell(io, finding);
}

/** @throws UsageError */
function wanted({ only, ignore }: { only?: string; ignore?: string }): (condition: Condition) => boolean {
  if (only !== undefined && ignore !== undefined)
    throw new UsageError('--only and --ignore exclude each other');
  if (only !== undefined) {
    const chosen = someOf('--only', only, NAMES);
    return ({ name }) => chosen.includes(name);
  }
  const ignored = ignore === undefined ? [] : someOf('--ignore', ignore, NAMES);
  return ({ name }) => !ignored.includes(name);
}

type Found = { readonly conditions: readonly Condition[]; readonly depth: Depth | undefined };

async function ask(env: Env, io: Io, timeoutS: number): Promise<Found | Finding> {
  const signal = AbortSignal.timeout(timeoutS * 1_000);
  let last: AnswerError | NoAnswerError | undefined;
  // What it waits for is said at the end alone: what a check writes, cron sends as a mail.
  const { client } = openApi(env, io, { onWait: (_, error) => (last = error) });
  try {
    const { items } = await client.conditions({ signal });
    return { conditions: items, depth: await depthOf(client, items, signal) };
  } catch (error) {
    if (!signal.aborted) throw error;
    const text = last === undefined ? 'the service has not answered' : last.message;
    return { state: 'UNKNOWN', text: `${text} (within ${counted(timeoutS, 'second')})` };
  }
}

/** For the performance data. Nothing while Postgres does not say. */
async function depthOf(
  client: OperatorsClient,
  conditions: readonly Condition[],
  signal: AbortSignal,
): Promise<Depth | undefined> {
  if (conditions.some(({ is_so: isSo }) => isSo === null)) return undefined;
  return client.outboxCounts({}, { signal }).catch(() => undefined);
}

function judge(conditions: readonly Condition[], depth: Depth | undefined): Finding {
  const so = conditions.filter((condition) => condition.is_so === true);
  const unknown = conditions.filter((condition) => condition.is_so === null);
  const perfdata = perfdataOf(conditions, depth);
  const more = [...so.map(lineOf), ...unknown.map(({ name }) => `UNKNOWN ${name}: Postgres does not answer`)];
  if (so.length > 0) {
    const state = so.some(({ severity }) => severity === 'critical') ? 'CRITICAL' : 'WARNING';
    return { state, text: so.map(nameOf).join(', '), perfdata, more };
  }
  if (unknown.length > 0) {
    const text = `Postgres does not answer: ${unknown.map(({ name }) => name).join(', ')}`;
    return { state: 'UNKNOWN', text, perfdata };
  }
  return {
    state: 'OK',
    text: `none of ${counted(new Set(conditions.map(({ name }) => name)).size, 'condition')} is so`,
    perfdata,
  };
}

const nameOf = ({ name, subject }: Condition) => (subject === null ? name : `${name} of ${subject}`);

const lineOf = (condition: Condition) =>
  `${condition.severity.toUpperCase()} ${nameOf(condition)}: ${condition.summary} (docs/runbook.md#${condition.name})`;

/** Counts that a graph is worth of, by their labels. */
const COUNTED = { quarantine: 'quarantine', conflicts: 'conflicts', 'stuck-jobs': 'stuck_jobs' } as const;

function perfdataOf(conditions: readonly Condition[], depth: Depth | undefined): string[] {
  const ofDepth = depth && {
    pending: depth.counts.pending,
    oldest: `${ageS(depth.oldest_pending_at)}s`,
    returned: depth.counts.returned,
    parked: depth.counts.parked,
  };
  const counts = Object.entries(COUNTED).flatMap(([name, label]) => {
    const value = conditions.find((condition) => condition.name === name)?.value ?? null;
    return value === null ? [] : [[label, value] as const];
  });
  return [...Object.entries(ofDepth ?? {}), ...counts].map(([label, value]) => `${label}=${value}`);
}

const ageS = (at: string | null) =>
  at === null ? 0 : Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1_000));

/** Performance data begin at the first bar, wherever it stands. */
const withoutBars = (text: string) => text.replaceAll('|', '/').replaceAll('\n', ' ');

function tell(io: Io, { state, text, perfdata = [], more = [] }: Finding): number {
  const data = perfdata.length === 0 ? '' : ` | ${perfdata.join(' ')}`;
  io.say(`TALLYHOOK ${state} - ${withoutBars(text)}${data}`);
  for (const line of more) io.say(withoutBars(line));
  return STATES[state];
}

/** On standard output, where monitoring reads. */
function report(io: Io, error: unknown): number {
  const [text = '', ...more] = describeFailure(error, 'tallyhook check --help').lines;
  return tell(io, { state: 'UNKNOWN', text, more });
}

export const check: Command = { help, run, report };
