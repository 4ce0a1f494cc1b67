// `tallyhook alerts`: what is going on that an operator has to know of, what was, and whether the channels work.

import { UsageError } from '../../base/errors.ts';
import type { Env } from '../../config.ts';
import { parse } from '../../terminal/arguments.ts';
import { nounCommand } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { counted } from '../../terminal/readable.ts';
import { type Answers, ApiAnswerError, type Items, type OperatorsClient } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { COLUMNS } from '../kernel/list/columns.command.ts';
import { timeOf } from '../kernel/list/filters.command.ts';
import { listHelp, listVerb } from '../kernel/list/list.command.ts';
import { nameColumn, terminalColumn, textColumn } from '../kernel/list/looks.command.ts';

/** A night and a day: who comes in the morning sees both. */
const SINCE = '24h';
/** Of each of the two tables; more are in "alerts list". */
const SHOWN_MAX = 200;

const OPTIONS = {
  since: option('TIME', `what ended since then: 2026-01-31T12:00:00Z, or 15m, 24h, 7d ago (${SINCE})`),
  'send-test': flag('send a message to each channel of ALERTS_FILE instead, and say which ones took it'),
} as const;

const help = `What is going on that you have to know of, and what was: from when to when, how many events waited, who decided.

  alerts                the open incidents, and those that have ended lately; in a pipe one JSON object a line
${optionHelp(OPTIONS)}
  alerts list           all incidents, the newest first
${listHelp('incidents')}

A condition becomes an incident if it lasts. docs/runbook.md has a section for each, with what to do. "--send-test" needs the role
admin; exit code 1 if a channel did not take the message, or none is configured. For cron and Nagios: "tallyhook check".`;

type Incident = Items['incidents'];
type Condition = Answers['conditions']['items'][number];

export const NOT_YET = [
  terminalColumn<Condition>({ head: 'condition', look: 'word', of: ({ name }) => name }),
  nameColumn<Condition>('source', ({ subject }) => subject),
  textColumn<Condition>('what', ({ summary }) => summary),
];

async function overview(args: string[], env: Env, io: Io): Promise<number> {
  const { values } = parse(args, OPTIONS);
  const { since, 'send-test': isTest } = values;
  if (isTest && since !== undefined) throw new UsageError('--since and --send-test exclude each other');
  if (isTest) return sendTest(env, io);
  const { client } = openApi(env, io);
  const from = timeOf('--since', since ?? SINCE);
  const [open, ended] = await Promise.all([
    all(client, { state: 'open' }),
    all(client, { state: 'ended', from }),
  ]);
  if (!io.stdout.isTTY) {
    for (const incident of [...open, ...ended]) await io.putJson(incident);
    if (open.length + ended.length === 0) io.complain(`no incident is open, and none ended since ${from}`);
    return 0;
  }
  await show(io, 'going on', open, 'nothing is going on');
  const notYet = await beginning(client, open);
  if (notYet.length > 0) {
    await io.put(`\n${io.paint('bold', 'not an incident yet')}\n`);
    await printTable(io, notYet, NOT_YET);
  }
  await io.put('\n');
  await show(io, `since ${from.slice(0, 16).replace('T', ' ')} (UTC)`, ended, 'nothing else was');
  return 0;
}

async function all(
  client: OperatorsClient,
  query: Parameters<typeof client.each<'incidents'>>[1],
): Promise<Incident[]> {
  const found: Incident[] = [];
  for await (const incident of client.each('incidents', query, { max: SHOWN_MAX })) found.push(incident);
  return found;
}

async function show(io: Io, title: string, incidents: readonly Incident[], none: string): Promise<void> {
  await io.put(`${io.paint('bold', title)}\n`);
  if (incidents.length === 0) await io.put(`${none}\n`);
  else await printTable(io, incidents, COLUMNS.incidents);
  if (incidents.length === SHOWN_MAX) io.complain(`the first ${SHOWN_MAX}; for all: "alerts list"`);
}

/** What is so, and has not lasted long enough. Nothing for a token that may see some sources only. */
async function beginning(client: OperatorsClient, open: readonly Incident[]): Promise<Condition[]> {
  try {
    const { items } = await client.conditions();
    const isOpen = ({ name, subject }: Condition) =>
      open.some((incident) => incident.condition === name && incident.subject === subject);
    return items.filter((condition) => condition.is_so === true && !isOpen(condition));
  } catch (error) {
    if (error instanceof ApiAnswerError && error.httpStatus === 403) return [];
    throw error;
  }
}

type TestResult = Answers['alertTest']['items'][number];

const RESULTS = [
  nameColumn<TestResult>('channel', ({ channel }) => channel),
  terminalColumn<TestResult>({ head: 'result', look: 'word', of: ({ ok }) => (ok ? 'done' : 'failed') }),
  textColumn<TestResult>('why', ({ error }) => error),
];

async function sendTest(env: Env, io: Io): Promise<number> {
  const { client, nextKey } = openApi(env, io);
  const { items } = await client.testAlerts(nextKey());
  if (!io.stdout.isTTY) for (const item of items) await io.putJson(item);
  else if (items.length > 0) await printTable(io, items, RESULTS);
  const failed = items.filter(({ ok }) => !ok).length;
  if (items.length === 0) io.complain('no channel is configured: see ALERTS_FILE in docs/configuration.md');
  else if (failed > 0) io.complain(`${counted(failed, 'channel')} of ${items.length} took no message`);
  return items.length === 0 || failed > 0 ? 1 : 0;
}

export const alerts = nounCommand('alerts', {
  help,
  verbs: { list: listVerb('incidents', 'incident') },
  otherwise: overview,
});
