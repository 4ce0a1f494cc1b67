// Reads from the ledger, at the end of a run, what the checker compares with what was seen outside.

import { BODY_SHA256 } from '../../src/ledger/understanding/body-hash.ts';
import { PUBLICATIONS } from '../support/publications.ts';
import type { Ledger, LedgerDelivery, LedgerEvent, LedgerPublication } from './recorded.ts';
import type { World } from './world.ts';
import { OUTBOX } from '../support/outbox.ts';

const LIMIT_MS = 120_000;
/** The id of the event `e`. */
export const EVENT_KEY = `e.source || ':' || e.job_id || ':' || e.status || coalesce(':' || e.progress_percentage, '')`;
/** On the clock of the harness: Postgres runs on the same machine. */
const since = (column: string) => `extract(epoch from ${column})::float8 * 1000 - $1::float8`;

const EVENTS = `select ${EVENT_KEY} as id, e.sequence::text, e.late,
to_char(e.recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "recordedAt",
${since('e.recorded_at')} as "recordedMs"
from events e order by e.sequence`;
const ATTEMPTS = `select ${EVENT_KEY} as "eventId", p.result, ${since('p.published_at')} as "atMs"
from ${PUBLICATIONS} p join events e on e.sequence = p.event_sequence`;
const DELIVERIES = `select headers::json ->> 'x-request-id' as "requestId", outcome, http_status as status,
job_id as "jobId", secret_fingerprint as "secretFingerprint",
encode(${BODY_SHA256}, 'hex') as "bodySha256", body_bytes as "bodyBytes",
body is not null as "hasBody", encode(sha256(body), 'hex') as "keptSha256", octet_length(body) as "keptBytes"
from deliveries`;
const COUNTED = 'select coalesce(sum(unauthorized + refused), 0)::int as counted from refusals';

export async function readLedger({ query }: World): Promise<Ledger> {
  const origin = [performance.timeOrigin];
  const [counted] = await query<{ counted: number }>(COUNTED, [], LIMIT_MS);
  const [outbox] = await query<{ left: number }>(`select count(*)::int as "left" from ${OUTBOX}`);
  return {
    events: await query<LedgerEvent>(EVENTS, origin, LIMIT_MS),
    publications: await query<LedgerPublication>(ATTEMPTS, origin, LIMIT_MS),
    deliveries: await query<LedgerDelivery>(DELIVERIES, [], LIMIT_MS),
    countedRefusals: counted?.counted ?? 0,
    outboxLeft: outbox?.left ?? Number.NaN,
  };
}
