// The rows of incident_messages that are to be sent. `due_at` stays what it was when the row was made: a message is given up a day
// after it. Each write is fenced by the lease: it changes nothing when another replica has taken that.

import type { DatabaseConnection, Statement } from '../../ledger/index.ts';
import type { Told } from './told.ts';

/** As far as messages need it. */
export type HeldLease = {
  readonly holder: string;
  readonly isLeading: () => boolean;
  readonly epoch: () => string | undefined;
};

export type DueMessage = Told & {
  readonly incident: string;
  readonly moment: 'begin' | 'end';
  readonly channel: string;
  readonly attempts: number;
};

export type GivenUp = { readonly channel: string; readonly count: number; readonly error: string | null };

/** `$1` and `$2` of each write: the holder and the epoch. Relies on the primary key of relay_lease. */
const FENCE = `exists (
  select from relay_lease
  where name = 'watch' and holder = $1::uuid and epoch = $2::bigint and expires_at > clock_timestamp()
)`;

const UNSETTLED = (alias: string) => `${alias}.sent_at is null and ${alias}.given_up_at is null`;

/** An incident that has ended before its begin was told is told once: the message of its end says when it began. */
const IS_TOLD_BY_END = `m.moment = 'begin' and exists (
  select from incident_messages e
  where e.incident_id = m.incident_id and e.channel = m.channel and e.moment = 'end' and ${UNSETTLED('e')}
)`;

/**
 * The next message of each channel in `$1`. One that was refused comes after those that were not tried: a receiver may take them. Relies
 * on the index incident_messages_due, which has what is to be sent alone.
 */
const NEXT: Statement = {
  name: 'messages-next',
  text: `
select distinct on (m.channel)
  m.id, m.incident_id, m.moment, m.channel, m.attempts,
  i.condition, i.subject, i.severity, i.summary, i.began_at, i.ended_at, i.events_waited::float8 as events_waited
from incident_messages m
join incidents i on i.id = m.incident_id
where ${UNSETTLED('m')} and m.channel = any($1::text[]) and m.due_at <= clock_timestamp()
  and m.due_at > clock_timestamp() - interval '24 hours' and not (${IS_TOLD_BY_END})
order by m.channel, m.attempts, m.due_at, m.id`,
};

/** Right before a request: one row says that this replica may send it. */
const CLAIM: Statement = {
  name: 'messages-claim',
  text: `
update incident_messages m set attempts = attempts + 1
where id = $3::uuid and ${UNSETTLED('m')} and ${FENCE}
returning id`,
};

/** The end tells of the begin, too. Relies on the unique key of (incident_id, moment, channel). */
const SENT: Statement = {
  name: 'messages-sent',
  text: `
update incident_messages m set sent_at = clock_timestamp(), last_error = null
from incident_messages told
where told.id = $3::uuid and m.incident_id = told.incident_id and m.channel = told.channel
  and (m.id = told.id or m.moment = 'begin') and ${UNSETTLED('m')} and ${FENCE}`,
};

const FAILED: Statement = {
  name: 'messages-failed',
  text: `update incident_messages m set last_error = $4 where id = $3::uuid and ${UNSETTLED('m')} and ${FENCE}`,
};

/** A day: by then somebody has seen it elsewhere, and what began yesterday is no news. */
const GIVE_UP: Statement = {
  name: 'messages-give-up',
  text: `
with given_up as (
  update incident_messages m set given_up_at = clock_timestamp()
  where ${UNSETTLED('m')} and m.due_at < clock_timestamp() - interval '24 hours' and not (${IS_TOLD_BY_END}) and ${FENCE}
  returning channel, last_error
)
select channel, count(*)::int as count, max(last_error) as error from given_up group by channel`,
};

type DueRow = {
  id: string;
  incident_id: string;
  moment: DueMessage['moment'];
  channel: string;
  attempts: number;
  condition: string;
  subject: string;
  severity: DueMessage['severity'];
  summary: string;
  began_at: Date;
  ended_at: Date | null;
  events_waited: number;
};

/** All reject with the database's errors. */
export function createDueMessages(
  { execute }: Pick<DatabaseConnection, 'execute'>,
  { holder }: Pick<HeldLease, 'holder'>,
) {
  return {
    /** One for each of these channels that has one. */
    next: async (channels: readonly string[]): Promise<readonly DueMessage[]> =>
      (await execute<DueRow>(NEXT, [channels])).map(toMessage),
    /** Whether it may be sent now by who has this epoch of the lease. */
    claim: async (id: string, epoch: string): Promise<boolean> =>
      (await execute(CLAIM, [holder, epoch, id])).length > 0,
    sent: (id: string, epoch: string): Promise<unknown> => execute(SENT, [holder, epoch, id]),
    failed: (id: string, epoch: string, error: string): Promise<unknown> =>
      execute(FAILED, [holder, epoch, id, error]),
    /** What was not taken for a day, also of channels that are not in the file any more. */
    giveUp: (epoch: string): Promise<readonly GivenUp[]> => execute<GivenUp>(GIVE_UP, [holder, epoch]),
  };
}

function toMessage({
  incident_id: incident,
  began_at: beganAt,
  ended_at: endedAt,
  events_waited: eventsWaited,
  ...same
}: DueRow): DueMessage {
  return { ...same, incident, beganAt, endedAt, eventsWaited };
}
