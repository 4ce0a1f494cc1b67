// When each secret of each source last matched a delivery, so that an old secret can be dropped safely. Kept apart from the
// deliveries, since the last one may be older than the retention, and two sources may share a secret. Exact to about ten
// seconds.

import type { Logger } from 'pino';
import type { DatabaseConnection, Statement } from '../sessions/database.ts';
import { createCounter } from './counter.ts';

export type SecretMatches = {
  /** Keeps it in memory until the next flush. Both names come from closed sets: the configured sources and their secrets. */
  readonly notice: (source: string, fingerprint: string) => void;
  /** Writes the last matches and stops. */
  readonly close: () => Promise<void>;
};

/** Rows are found by the primary key and taken in its order, or two replicas could deadlock. */
const ADD_MATCHES: Statement = {
  name: 'add-secret-matches',
  text: `
insert into secret_matches as m (source, fingerprint, last_matched_at)
select source, fingerprint, now() from unnest($1::text[], $2::text[]) as t (source, fingerprint)
order by source collate "C", fingerprint collate "C"
on conflict (source, fingerprint) do update set
  last_matched_at = greatest(m.last_matched_at, excluded.last_matched_at)`,
};

/** More than can be configured, so it is never reached. */
const PAIRS_MAX = 10_000;

export function createSecretMatches(options: {
  connection: DatabaseConnection;
  /** See `createCounter`. */
  firstFlushMs?: number;
  log: Logger;
}): SecretMatches {
  const { connection, log } = options;
  const counter = createCounter<{ source: string; fingerprint: string }>({
    name: 'secret matches',
    merge: () => {},
    write: async (rows) => {
      await connection.execute(ADD_MATCHES, [
        rows.map(({ source }) => source),
        rows.map(({ fingerprint }) => fingerprint),
      ]);
    },
    rowsPerGroup: PAIRS_MAX,
    groupOf: () => '',
    firstFlushMs: options.firstFlushMs,
    log,
  });
  return {
    notice: (source, fingerprint) => counter.add(`${source} ${fingerprint}`, { source, fingerprint }),
    close: counter.close,
  };
}
