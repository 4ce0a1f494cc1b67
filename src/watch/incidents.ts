// The statements of the watch. Each is short, on a connection of its own and within its time limits. What is written is one statement,
// which first changes the row of the lease: under its lock nobody else can take the lease, and without the lease nothing is written.

import { randomUUIDv7 } from 'node:crypto';
import { type ConditionName, CONDITIONS, type Condition, type Severity } from '../base/conditions.ts';
import {
  type DatabaseConnection,
  LATE_AFTER_S,
  type Looks,
  type Signs,
  type Statement,
} from '../ledger/index.ts';
import type { Lapse, ReplicaSigns } from './conditions-now.ts';
import { type Judged, Memory, type Sighting } from './judge.ts';

/** Where messages go. */
export type Channel = { readonly name: string; readonly takes: (severity: Severity) => boolean };

export type Remembered = {
  /** The database's clock. */
  readonly nowMs: number;
  readonly memory: Memory;
  /** Of all replicas but this one. */
  readonly others: readonly ReplicaSigns[];
  readonly lapse: Lapse | undefined;
};

type Execute = Pick<DatabaseConnection, 'execute'>;

/** By relay_lease_pkey and incidents_open. Of replicas there are some hundred at most. */
const REMEMBER: Statement = {
  name: 'watch-remember',
  text: `
select extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs",
  (select memory from relay_lease where name = 'watch') as memory,
  (select json_build_object(
      'beganS', extract(epoch from clock_timestamp() - lapsed_at)::float8,
      'endedS', extract(epoch from clock_timestamp() - since)::float8)
    from relay_lease where name = 'outbox' and lapsed_at is not null and since is not null) as lapse,
  (select coalesce(json_agg(json_build_object(
      'name', condition, 'subject', subject, 'incident', id, 'waited', events_waited,
      'firstMs', extract(epoch from began_at)::float8 * 1000, 'lastMs', extract(epoch from clock_timestamp())::float8 * 1000)), '[]')
    from incidents where ended_at is null) as open,
  (select coalesce(json_agg(json_build_object('signs', signs,
      'ageS', extract(epoch from clock_timestamp() - seen_at)::float8,
      'isLate', seen_at < clock_timestamp() - make_interval(secs => $2))), '[]')
    from replicas where id <> $1::uuid) as others`,
};

export async function remember(
  { execute }: Execute,
  replicaId: string,
  { lateAfterS = LATE_AFTER_S }: { readonly lateAfterS?: number } = {},
): Promise<Remembered> {
  const [row] = await execute<{
    nowMs: number;
    memory: unknown;
    lapse: Lapse | null;
    open: Sighting[];
    others: { signs: Signs; ageS: number; isLate: boolean }[];
  }>(REMEMBER, [replicaId, lateAfterS]);
  if (row === undefined) throw new Error('a select without a table gave no row');
  return {
    nowMs: row.nowMs,
    memory: withOpen(row.memory, row.open),
    others: row.others,
    lapse: row.lapse ?? undefined,
  };
}

/** What another version has left may have another form: then the open incidents go on, and the rest is seen anew. */
function withOpen(memory: unknown, open: readonly Sighting[]): Memory {
  const read = Memory.safeParse(memory);
  const seen: readonly Sighting[] = read.success ? read.data.seen : [];
  const ids = new Set(open.map(({ incident }) => incident));
  // An incident may be gone, and others may have begun, if the database was restored.
  const known = seen.filter(({ incident }) => incident === null || ids.has(incident));
  const isKnown = new Set(known.map(({ incident }) => incident));
  return { seen: [...known, ...open.filter(({ incident }) => !isKnown.has(incident))] };
}

/** The last ones: more lines would name nobody else, as a rule. */
const DECISIONS_MAX = 1_000;

/** Whose decisions end what: actions of the operator log. */
const DECISIONS: Partial<Record<ConditionName, readonly string[]>> = {
  quarantine: ['quarantine.release', 'quarantine.discard'],
};
const OF_OUTBOX = ['outbox.retry', 'outbox.discard', 'outbox.park'];

/** By operator_log_action: of each action the lines since the incident began. */
const DECIDED: Statement = {
  name: 'watch-decided',
  text: `
select i.id, array_agg(distinct l.actor order by l.actor) as actors
from jsonb_to_recordset($1::jsonb) as i (id text, began float8, actions jsonb)
cross join lateral jsonb_array_elements_text(i.actions) as a (action)
cross join lateral (
  select actor from operator_log
  where action = a.action and at >= to_timestamp(i.began / 1000) order by at desc limit ${DECISIONS_MAX}
) l
group by i.id`,
};

/** @returns who decided since each of these began, by their ids */
export async function readDecisions(
  { execute }: Execute,
  known: Judged['known'],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = known.flatMap(({ name, firstMs, incident }) => {
    const condition = name in CONDITIONS ? (name as ConditionName) : undefined;
    const { isDecided }: Partial<Condition> = condition === undefined ? {} : CONDITIONS[condition];
    if (condition === undefined || isDecided !== true) return [];
    return [{ id: incident, began: firstMs, actions: DECISIONS[condition] ?? OF_OUTBOX }];
  });
  if (asked.length === 0) return new Map();
  const rows = await execute<{ id: string; actors: string[] }>(DECIDED, [JSON.stringify(asked)]);
  return new Map(rows.map(({ id, actors }) => [id, actors]));
}

/** `fence` waits for whoever takes the lease at this moment, and then finds that it is not ours any more. */
const WRITE: Statement = {
  name: 'watch-write',
  text: `
with fence as (
  update relay_lease set memory = $3::jsonb
  where name = 'watch' and holder = $1::uuid and epoch = $2::bigint and expires_at > clock_timestamp()
  returning epoch
),
begun as (
  insert into incidents (id, condition, subject, severity, summary, began_at, events_waited, decided_by)
  select b.id, b.condition, b.subject, b.severity, b.summary, to_timestamp(b.began / 1000), b.waited, b.decided
  from fence, jsonb_to_recordset($4::jsonb) as b (
    id uuid, condition text, subject text, severity text, summary text, began float8, waited bigint, decided text[])
),
changed as (
  update incidents i set ended_at = to_timestamp(k.ended / 1000), events_waited = k.waited, decided_by = k.decided,
    summary = coalesce(k.summary, i.summary)
  from fence, jsonb_to_recordset($5::jsonb) as k (id uuid, ended float8, waited bigint, decided text[], summary text)
  where i.id = k.id and i.ended_at is null
    and (k.ended is not null
      or (i.events_waited, i.decided_by, i.summary) is distinct from (k.waited, k.decided, coalesce(k.summary, i.summary)))
),
told as (
  insert into incident_messages (id, incident_id, moment, channel, due_at)
  select m.id, m.incident, m.moment, m.channel, clock_timestamp()
  from fence, jsonb_to_recordset($6::jsonb) as m (id uuid, incident uuid, moment text, channel text)
  on conflict (incident_id, moment, channel) do nothing
),
waited as (
  insert into waits as w (minute, pending, returned, parked, quarantined, oldest_pending_s)
  select date_trunc('minute', clock_timestamp()), t.pending, t.returned, t.parked, t.quarantined, t.oldest
  from fence, jsonb_to_record($7::jsonb) as t (pending integer, returned integer, parked integer, quarantined integer, oldest float8)
  on conflict (minute) do update set
    pending = greatest(w.pending, excluded.pending), returned = greatest(w.returned, excluded.returned),
    parked = greatest(w.parked, excluded.parked), quarantined = greatest(w.quarantined, excluded.quarantined),
    oldest_pending_s = greatest(w.oldest_pending_s, excluded.oldest_pending_s)
)
select from fence`,
};

/**
 * Writes what was judged, with a message for each channel that takes it, and what waits, if this replica has the lease of this epoch at this moment.
 * @returns false if it has not: nothing was written
 */
export async function writeIncidents(
  { execute }: Execute,
  { memory, begun, known }: Judged,
  options: {
    readonly holder: string;
    readonly epoch: string;
    readonly decided: ReadonlyMap<string, readonly string[]>;
    readonly channels: readonly Channel[];
    readonly looks: Pick<Looks, 'outbox' | 'quarantined'>;
  },
): Promise<boolean> {
  const { holder, epoch, decided, channels, looks } = options;
  const tell = (incident: string, severity: Severity, moment: 'begin' | 'end') =>
    channels
      .filter((channel) => channel.takes(severity))
      .map(({ name }) => ({ id: randomUUIDv7(), incident, moment, channel: name }));
  const ended = known.filter(({ endedMs }) => endedMs !== null);
  const messages = [
    ...begun.flatMap(({ id, now }) => tell(id, now.severity, 'begin')),
    ...ended.flatMap(({ incident, name }) => tell(incident, severityOf(name), 'end')),
  ];
  const rows = await execute(WRITE, [
    holder,
    epoch,
    JSON.stringify(memory),
    JSON.stringify(
      begun.map(({ id, now, beganMs, waited }) => ({
        id,
        condition: now.name,
        subject: now.subject,
        severity: now.severity,
        summary: now.summary,
        began: beganMs,
        waited,
        decided: [...(decided.get(id) ?? [])],
      })),
    ),
    JSON.stringify(
      known.map(({ incident, endedMs, waited, summary }) => ({
        id: incident,
        ended: endedMs,
        waited,
        summary,
        decided: [...(decided.get(incident) ?? [])],
      })),
    ),
    JSON.stringify(messages),
    JSON.stringify({
      ...looks.outbox.counts,
      quarantined: looks.quarantined.count,
      oldest: looks.outbox.oldestPendingS ?? 0,
    }),
  ]);
  return rows.length === 1;
}

/** Of a condition that only another version knows: all channels are told. */
export const severityOf = (name: string): Severity =>
  name in CONDITIONS ? CONDITIONS[name as ConditionName].severity : 'critical';

const OPEN: Statement = {
  name: 'incidents-open',
  text: `
select s.severity, count(i.id)::int as count
from unnest(array['critical', 'warning']) as s (severity)
left join incidents i on i.severity = s.severity and i.ended_at is null group by s.severity`,
};

/** By incidents_open. */
export async function countOpen({ execute }: Execute): Promise<{ severity: Severity; count: number }[]> {
  return execute<{ severity: Severity; count: number }>(OPEN, []);
}
