// When an entry `o` of the outbox may be published, as SQL that the loads of live entries and of copies share: both have to
// mean the same, or a copy could pass a live event. `$1` are the positions that the relay has in memory.

/** No earlier live entry of its job failed and is not due yet, or is parked (index outbox_troubled). */
export const BEHIND_NO_TROUBLE = `(
      select t.sequence from outbox t
      where t.source = o.source and t.job_id = o.job_id and t.sequence < o.sequence and t.replay_id is null
        and t.attempts > 0 and t.state <> 'returned' and (t.state = 'parked' or t.due_at > now())
      limit 1
    ) is null`;

/** A live entry that could go now (index outbox_pending). */
export const LIVE_MAY_GO = `o.state = 'pending' and o.replay_id is null and o.due_at <= now()
    and o.sequence not in (select unnest($1::bigint[]))
    and ${BEHIND_NO_TROUBLE}`;
