// The filters of lists as options: what each is called, what it takes, and under which name the API knows it. Values
// are checked by the API, but for times, which may be written as a person would.

import { UsageError } from '../errors.ts';
import type { Query } from '../operators/client/index.ts';

type Filter = {
  readonly query: string;
  readonly takes: string;
  readonly help: string;
  readonly kind?: 'time' | 'seconds' | 'flag';
};

const FILTERS = {
  source: { query: 'source', takes: 'NAME', help: 'only of this source' },
  outcome: {
    query: 'outcome',
    takes: 'OUTCOME',
    help: 'accepted, duplicate, conflict, quarantined, malformed, unauthorized or refused',
  },
  status: {
    query: 'status',
    takes: 'STATUS',
    help: 'as the sender wrote it: processing, completed, failed, …',
  },
  kind: { query: 'kind', takes: 'KIND', help: 'completed, failed or progress' },
  job: { query: 'job_id', takes: 'ID', help: 'only of this job' },
  'job-prefix': { query: 'job_id_prefix', takes: 'TEXT', help: 'only of jobs whose id begins so' },
  'error-code': { query: 'error_code', takes: 'CODE', help: 'only failures with this code' },
  from: {
    query: 'from',
    takes: 'TIME',
    kind: 'time',
    help: 'not before: 2026-01-31T12:00:00Z, 2026-01-31, or 15m, 24h, 7d ago',
  },
  to: { query: 'to', takes: 'TIME', kind: 'time', help: 'before this time' },
  secret: { query: 'secret_fingerprint', takes: 'HEX', help: 'signed with the secret of this fingerprint' },
  address: { query: 'remote_address', takes: 'IP', help: 'only from this address' },
  late: { query: 'late', takes: '', kind: 'flag', help: 'only events that came late' },
  result: { query: 'result', takes: 'RESULT', help: 'confirmed, returned, nacked or failed' },
  event: { query: 'event_id', takes: 'ID', help: 'only of this event' },
  replay: { query: 'replay_id', takes: 'ID', help: 'only of this replay' },
  released: {
    query: 'released',
    takes: '',
    kind: 'flag',
    help: 'those that were released, instead of those that were not',
  },
  state: { query: 'state', takes: 'STATE', help: '' },
  'stuck-after': {
    query: 'stuck_after',
    takes: 'TIME',
    kind: 'seconds',
    help: 'with --state stuck: first seen longer ago than this: 90s, 15m, 24h, 7d (1h)',
  },
  actor: { query: 'actor', takes: 'NAME', help: 'only by the token of this name' },
  token: { query: 'token_id', takes: 'ID', help: 'only by this token' },
  action: {
    query: 'action',
    takes: 'ACTION',
    help: 'body.read, export, replay.create, quarantine.release, outbox.retry, token.create, …',
  },
  subject: {
    query: 'subject',
    takes: 'ID',
    help: 'only what was done to this delivery, event, replay or token',
  },
  events: { query: 'events', takes: 'WHAT', help: 'deliveries or publications (both)' },
} as const satisfies Record<string, Filter>;

export type FilterName = keyof typeof FILTERS;
type Values = Readonly<Record<string, unknown>>;

export const FILTERS_OF = {
  jobs: ['state', 'stuck-after', 'source', 'job', 'job-prefix', 'from', 'to'],
  deliveries: [
    'source',
    'outcome',
    'status',
    'kind',
    'job',
    'job-prefix',
    'error-code',
    'secret',
    'address',
    'from',
    'to',
  ],
  events: ['source', 'status', 'kind', 'job', 'job-prefix', 'error-code', 'late', 'from', 'to'],
  publications: ['source', 'result', 'event', 'job', 'job-prefix', 'replay', 'from', 'to'],
  quarantine: ['source', 'status', 'job', 'job-prefix', 'released', 'from', 'to'],
  outbox: ['state', 'source', 'job'],
  replays: ['state'],
  'operator-log': ['actor', 'token', 'action', 'subject', 'source', 'from', 'to'],
} as const satisfies Record<string, readonly FilterName[]>;

/** As `parse` takes them. */
export function filterOptions<N extends FilterName>(
  names: readonly N[],
): Record<N, { readonly type: 'string' | 'boolean' }> {
  return Object.fromEntries(
    names.map((name) => [name, { type: filterOf(name).kind === 'flag' ? 'boolean' : 'string' }]),
  ) as Record<N, { type: 'string' | 'boolean' }>;
}

/** @throws UsageError for a time that is none. */
export function readFilters(names: readonly FilterName[], values: Values): Query {
  const query: Record<string, string | number | boolean> = {};
  for (const name of names) {
    const value = values[name];
    if (value === undefined) continue;
    const { query: parameter, kind } = filterOf(name);
    query[parameter] = typeof value === 'string' ? convert(name, value, kind) : true;
  }
  return query;
}

/** Lines for a command's help. `states`: what `--state` takes there. */
export function filterHelp(names: readonly FilterName[], states = ''): string {
  return names
    .map((name) => {
      const { takes, help } = filterOf(name);
      return `    ${`--${name} ${takes}`.padEnd(21)} ${help === '' ? states : help}`;
    })
    .join('\n');
}

const filterOf = (name: FilterName): Filter => FILTERS[name];

function convert(name: string, text: string, kind: Filter['kind']): string | number {
  if (kind === 'time') return timeOf(`--${name}`, text);
  if (kind === 'seconds') return secondsOf(`--${name}`, text);
  return text;
}

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** `90s`, `15m`, `24h`, `7d`, or seconds. @throws UsageError */
export function secondsOf(name: string, text: string): number {
  const [, digits, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  if (digits === undefined) throw new UsageError(`${name} takes a time such as 90s, 15m, 24h or 7d`);
  return Number(digits) * (UNIT_S[unit] ?? 1);
}

/** A moment as the API takes it; so long ago, a day, or RFC 3339. @throws UsageError */
export function timeOf(name: string, text: string, nowMs = Date.now()): string {
  if (/^\d{1,9}[smhd]$/.test(text)) return new Date(nowMs - secondsOf(name, text) * 1_000).toISOString();
  if (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))) return `${text}T00:00:00Z`;
  const form = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;
  if (form.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new UsageError(`${name} takes 2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 15m, 24h, 7d`);
}
