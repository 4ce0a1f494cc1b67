// The filters of lists as options: how each parameter of the API is called, what it takes, and its help. The API checks
// the values. Times alone are converted here, so that they may be written as a person would.

import type { z } from 'zod';
import { UsageError } from '../errors.ts';
import { parseMoment, parseSpan } from '../moments.ts';
import { type ListName, LISTS, type liveFilters, OPTION_NAMES } from '../operators/client/index.ts';
import { optionHelp } from './options.ts';

type KeysOf<Shape> = Shape extends unknown ? keyof Shape : never;
type Parameter = KeysOf<(typeof LISTS)[ListName]['filters'] | typeof liveFilters>;
/** Parameters that commands set themselves. */
type WithoutOption = 'copies';

type Option = {
  readonly name: string;
  readonly takes: string;
  readonly help: string;
  readonly kind?: 'time' | 'seconds' | 'flag';
};

/** As a sentence lists them: `confirmed, returned, nacked or failed`. */
export const orOf = (words: readonly string[]): string => words.join(', ').replace(/, (?!.*, )/, ' or ');

/** The words that a filter takes. */
export const wordsOf = (filter: z.ZodOptional<z.ZodEnum>): string =>
  orOf(filter.unwrap().options as string[]);

/** By the API's parameters, in the order of the help. */
const OPTIONS = {
  events: { name: OPTION_NAMES.events.name, takes: 'WHAT', help: 'deliveries or publications (both)' },
  actor: { name: OPTION_NAMES.actor.name, takes: 'NAME', help: 'only by the token of this name' },
  token_id: { name: OPTION_NAMES.token_id.name, takes: 'ID', help: 'only by this token' },
  action: {
    name: OPTION_NAMES.action.name,
    takes: 'ACTION',
    help: 'body.read, export, replay.create, quarantine.release, outbox.retry, token.create, …',
  },
  subject: {
    name: OPTION_NAMES.subject.name,
    takes: 'ID',
    help: 'only what was done to this delivery, event, replay or token',
  },
  state: { name: OPTION_NAMES.state.name, takes: 'STATE', help: '' },
  stuck_after: {
    name: OPTION_NAMES.stuck_after.name,
    takes: 'TIME',
    kind: 'seconds',
    help: 'with --state stuck: first seen longer ago than this: 90s, 15m, 24h, 7d (1h)',
  },
  source: { name: OPTION_NAMES.source.name, takes: 'NAME', help: 'only of this source' },
  outcome: {
    name: OPTION_NAMES.outcome.name,
    takes: 'OUTCOME',
    help: wordsOf(LISTS.deliveries.filters.outcome),
  },
  reason: {
    name: OPTION_NAMES.reason.name,
    takes: 'TEXT',
    help: 'only with this reason, word for word; in the outbox the last error',
  },
  queue: { name: OPTION_NAMES.queue.name, takes: 'NAME', help: "only replays' copies for this queue" },
  result: {
    name: OPTION_NAMES.result.name,
    takes: 'RESULT',
    help: wordsOf(LISTS.publications.filters.result),
  },
  event_id: { name: OPTION_NAMES.event_id.name, takes: 'ID', help: 'only of this event' },
  status: {
    name: OPTION_NAMES.status.name,
    takes: 'STATUS',
    help: 'as the sender wrote it: processing, completed, failed, …',
  },
  kind: { name: OPTION_NAMES.kind.name, takes: 'KIND', help: 'completed, failed or progress' },
  job_id: { name: OPTION_NAMES.job_id.name, takes: 'ID', help: 'only of this job' },
  job_id_prefix: {
    name: OPTION_NAMES.job_id_prefix.name,
    takes: 'TEXT',
    help: 'only of jobs whose id begins with TEXT',
  },
  error_code: { name: OPTION_NAMES.error_code.name, takes: 'CODE', help: 'only failures with this code' },
  secret_fingerprint: {
    name: OPTION_NAMES.secret_fingerprint.name,
    takes: 'HEX',
    help: 'signed with the secret of this fingerprint',
  },
  remote_address: { name: OPTION_NAMES.remote_address.name, takes: 'IP', help: 'only from this address' },
  late: { name: OPTION_NAMES.late.name, takes: '', kind: 'flag', help: 'only events that came late' },
  replay_id: { name: OPTION_NAMES.replay_id.name, takes: 'ID', help: 'only of this replay' },
  released: {
    name: OPTION_NAMES.released.name,
    takes: '',
    kind: 'flag',
    help: 'the same as --state released',
  },
  from: {
    name: OPTION_NAMES.from.name,
    takes: 'TIME',
    kind: 'time',
    help: 'not before: 2026-01-31T12:00:00Z, 2026-01-31, or 15m, 24h, 7d ago',
  },
  to: { name: OPTION_NAMES.to.name, takes: 'TIME', kind: 'time', help: 'before this time' },
} as const satisfies Record<Exclude<Parameter, WithoutOption>, Option>;

/** A parameter of the API that has an option. */
export type Filter = keyof typeof OPTIONS;
const FILTERS = Object.keys(OPTIONS) as Filter[];
const optionOf = (filter: Filter): Option => OPTIONS[filter];

/** Those of a list's filters that have options, in the order of the help. */
export function filtersOf<Shape extends object>(shape: Shape): readonly (Filter & keyof Shape)[] {
  return FILTERS.filter((filter): filter is Filter & keyof Shape => filter in shape);
}

type ValueOf<F extends Filter> = (typeof OPTIONS)[F] extends { readonly kind: 'flag' }
  ? true
  : (typeof OPTIONS)[F] extends { readonly kind: 'seconds' }
    ? number
    : string;
export type FilterQuery<F extends Filter> = { readonly [Name in F]?: ValueOf<Name> };

/** As `parse` takes them. */
export function filterOptions<F extends Filter>(
  filters: readonly F[],
): Record<(typeof OPTIONS)[F]['name'], { readonly type: 'string' | 'boolean' }> {
  return Object.fromEntries(
    filters.map((filter) => {
      const { name, kind } = optionOf(filter);
      return [name, { type: kind === 'flag' ? 'boolean' : 'string' }];
    }),
  ) as Record<(typeof OPTIONS)[F]['name'], { type: 'string' | 'boolean' }>;
}

/** @throws UsageError for a time that is none. */
export function readFilters<F extends Filter>(
  filters: readonly F[],
  values: Readonly<Record<string, unknown>>,
): FilterQuery<F> {
  const given = filters.flatMap((filter) => {
    const { name, kind } = optionOf(filter);
    const value = values[name];
    if (value === undefined) return [];
    return [[filter, typeof value === 'string' ? convert(name, value, kind) : true] as const];
  });
  return Object.fromEntries(given) as FilterQuery<F>;
}

/** Lines for a command's help. `states`: what `--state` takes there. */
export const filterHelp = (filters: readonly Filter[], states = ''): string =>
  optionHelp(
    Object.fromEntries(
      filters.map((filter) => {
        const { name, takes, help } = optionOf(filter);
        return [name, { ...(takes !== '' && { takes }), help: help === '' ? states : help }];
      }),
    ),
  );

function convert(name: string, text: string, kind: Option['kind']): string | number {
  if (kind === 'time') return timeOf(`--${name}`, text);
  if (kind === 'seconds') return stuckAfterOf(`--${name}`, text);
  return text;
}

/** Bounds of the API. @throws UsageError */
function stuckAfterOf(name: string, text: string): number {
  const seconds = secondsOf(name, text);
  if (seconds >= 60 && seconds <= 365 * 86_400) return seconds;
  throw new UsageError(`${name} takes a time from 60s to 365d`);
}

/** `90s`, `15m`, `24h`, `7d`, or seconds. @throws UsageError */
export function secondsOf(name: string, text: string): number {
  const seconds = parseSpan(text);
  if (seconds === undefined) throw new UsageError(`${name} takes a time such as 90s, 15m, 24h or 7d`);
  return seconds;
}

/** A moment as the API takes it; so long ago, a day, or RFC 3339. @throws UsageError */
export function timeOf(name: string, text: string, nowMs = Date.now()): string {
  const moment = parseMoment(text, nowMs);
  if (moment !== undefined) return moment;
  throw new UsageError(`${name} takes 2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 15m, 24h, 7d`);
}
