// Rows of incidents, for what shows them.

import { randomUUIDv7 } from 'node:crypto';
import type { Severity } from '../../src/base/conditions.ts';
import type { TestDatabase } from './database.ts';

export type IncidentRow = {
  readonly condition: string;
  readonly subject?: string;
  readonly severity: Severity;
  readonly summary?: string;
  /** As an interval of Postgres. */
  readonly beganAgo: string;
  /** It goes on without it. */
  readonly endedAgo?: string;
  readonly eventsWaited?: number;
  readonly decidedBy?: readonly string[];
};

/** @returns its id */
export async function insertIncident(
  database: Pick<TestDatabase, 'query'>,
  { condition, subject = '', severity, summary = `a test of ${condition}`, ...row }: IncidentRow,
): Promise<string> {
  const id = randomUUIDv7();
  await database.query(
    `insert into incidents (id, condition, subject, severity, summary, began_at, ended_at, events_waited, decided_by)
     values ($1, $2, $3, $4, $5, now() - $6::interval, now() - $7::interval, $8, $9)`,
    [
      id,
      condition,
      subject,
      severity,
      summary,
      row.beganAgo,
      row.endedAgo ?? null,
      row.eventsWaited ?? 0,
      row.decidedBy ?? [],
    ],
  );
  return id;
}
