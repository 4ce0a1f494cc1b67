// The replicas of the service. Those that stopped have no row; those that were killed have one for an hour (upkeep/retention.ts
// of the ledger). Which one leads is read from the lease, which alone decides it.

import { type Kysely, sql } from 'kysely';
import { type Database, LATE_AFTER_S, timeText } from '../../ledger/index.ts';
import type { DatabaseLoss, Replica } from './contract.ts';

/** Above the number that upkeep leaves. */
const SHOWN_MAX = 500;

/** The newest first. */
export async function readReplicas(db: Kysely<Database>): Promise<Replica[]> {
  const { rows } = await sql<Replica>`
    select r.id, r.version, r.host, ${timeText('r.started_at')} as started_at, ${timeText('r.seen_at')} as seen_at,
      exists (select from relay_lease l where l.name = 'outbox' and l.holder = r.id and l.expires_at > clock_timestamp()) as leads,
      r.seen_at < clock_timestamp() - make_interval(secs => ${sql.lit(LATE_AFTER_S)}) as is_late
    from replicas r order by r.started_at desc, r.id limit ${SHOWN_MAX}`.execute(db);
  return rows;
}

/** The last one of a week, by operator_log_action. A replica has written it there (service.ts). */
export async function readLoss(db: Kysely<Database>): Promise<DatabaseLoss | null> {
  const { rows } = await sql<DatabaseLoss>`
    select ${timeText('l.at')} as at, l.detail::json ->> 'acknowledgedAt' as acknowledged_at,
      l.detail::json ->> 'keptUntil' as kept_until
    from operator_log l where l.action = 'database.loss' and l.at > now() - interval '7 days'
    order by l.at desc, l.id desc limit 1`.execute(db);
  return rows[0] ?? null;
}
