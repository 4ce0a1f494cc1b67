// Moves what the relay has just recorded back in time, as if it had come over hours. Only times change: what was answered, how
// long it took, and what the broker said stay as they were.

import type { Client } from 'pg';

/** Partitions are made for today and later, and a picture may be taken just after midnight. */
const YESTERDAY = ['deliveries', 'publications'].map(
  (parent) => `select make_partition('${parent}', (now() at time zone 'UTC')::date - 1)`,
);

/** Each publication moves with its own event. */
const UNPACK = [
  `insert into publications (published_at, id, event_sequence, attempt, result, duration_ms, relay_attempt, relay_id, source)
   select published_at, id + place - 1, event_sequence, 1, 'confirmed', duration_ms, 0, relay_id, source
   from publication_batches, unnest(sequences, durations_ms) with ordinality as u (event_sequence, duration_ms, place)`,
  'delete from publication_batches',
];

const MOVE = [
  `update publications p set published_at = a.at + (p.published_at - e.recorded_at)
   from events e join aged a on a.id = e.delivery_id where p.event_sequence = e.sequence`,
  // Batches are empty: all was published, or waits for an operator.
  `update outbox_held o set recorded_at = a.at from events e join aged a on a.id = e.delivery_id where o.sequence = e.sequence`,
  'update events e set recorded_at = a.at from aged a where a.id = e.delivery_id',
  'update deliveries d set received_at = a.at from aged a where a.id = d.id',
  `update jobs j set first_seen_at = t.first, last_seen_at = t.last,
     completed_at = t.completed, failed_at = t.failed
   from (
     select source, job_id, min(recorded_at) as first, max(recorded_at) as last,
       min(recorded_at) filter (where status = 'completed') as completed,
       min(recorded_at) filter (where status = 'failed') as failed
     from events group by source, job_id
   ) t
   where t.source = j.source and t.job_id = j.job_id`,
  // Of refusals, those that have a row.
  'delete from refusals',
  `insert into refusals (minute, source, unauthorized, refused)
   select date_trunc('minute', received_at), source, count(*) filter (where outcome = 'unauthorized'),
     count(*) filter (where outcome = 'refused')
   from deliveries where outcome in ('unauthorized', 'refused') group by 1, 2`,
  `update drift f set first_seen_at = now() - interval '5 hours', last_seen_at = now() - interval '9 minutes'`,
];

/** Each answer and each publication keeps its time; which of them belongs to which minute is dealt out in turn. */
const SPREAD = [
  `create temp table counted as
   select measure, source, result, bucket,
     row_number() over (partition by measure, source, result order by md5(bucket::text || n)) as place
   from (select measure, source, result, bucket, sum(count)::int as count from rollups group by 1, 2, 3, 4) r,
     generate_series(1, count) n`,
  `create temp table moments as
   select 'answer' as measure, source, outcome as result, received_at as at,
     row_number() over (partition by source, outcome order by received_at) as place from deliveries
   union all
   select 'lag', source, result, published_at,
     row_number() over (partition by source, result order by published_at) from publications`,
  'delete from rollups',
  `insert into rollups (minute, measure, source, result, bucket, count)
   select date_trunc('minute', coalesce(m.at, now())), c.measure, c.source, c.result, c.bucket, count(*)
   from counted c left join moments m using (measure, source, result, place) group by 1, 2, 3, 4, 5`,
];

/** @param minutesAgo of the deliveries, in the order in which they came. @throws Error if there are others */
export async function moveBack(client: Client, minutesAgo: readonly number[]): Promise<void> {
  await client.query('begin');
  await client.query(
    `create temp table aged on commit drop as
     select d.id, now() - make_interval(secs => ago * 60) as at
     from (select id, row_number() over (order by received_at, id) as place from deliveries) d
     full join unnest($1::float8[]) with ordinality as r (ago, place) using (place)`,
    [minutesAgo],
  );
  const { rows } = await client.query('select from aged where id is null or at is null');
  if (rows.length > 0)
    throw new Error(`${rows.length} deliveries were sent and not recorded, or the reverse`);
  for (const statement of [...YESTERDAY, ...UNPACK, ...MOVE, ...SPREAD]) await client.query(statement);
  await client.query('commit');
}
