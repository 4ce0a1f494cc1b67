// All publications as rows: those with a row of their own, and those that share one. To be read whole: where the order is
// wanted, Postgres sorts all of them.

/** To be followed by a name, as a table in parentheses. */
export const PUBLICATIONS = `(
  select published_at, id, event_sequence, attempt, result, detail, duration_ms, relay_id, source, replay_id, queue
  from publications
  union all
  select published_at, id + place - 1, event_sequence, 1, 'confirmed', null, duration_ms, relay_id, source, null, null
  from publication_batches, unnest(sequences, durations_ms) with ordinality as u (event_sequence, duration_ms, place)
)`;
