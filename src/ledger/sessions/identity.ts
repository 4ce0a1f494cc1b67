// Whether a new session is with the database that gave the last numbers. After a restore, a snapshot, or a failover that lost
// transactions, the sequence stands where it stood before, and its next numbers may be on the bus already. So each session that
// may draw numbers asks first, and where something has changed, the database raises the sequence
// (migrations/0001-first-release.ts).

import type { ClientBase } from 'pg';
import type { Logger } from 'pino';

export type Identity = {
  /**
   * To be awaited before the session is used.
   * @returns false if it cannot be verified, since it is read-only, or the start has not granted the right to it yet. It is good for
   *   reading, and not to be kept: a standby's session goes on when that is promoted
   * @throws the driver's errors: then nothing may be written in it
   */
  readonly verify: (client: Pick<ClientBase, 'query'>) => Promise<boolean>;
  /** Calls `listener` when the server was started anew, or the database is another one, since a session was verified before. */
  readonly onChange: (listener: () => void) => void;
};

/**
 * What every session can read of itself. It is new whenever what the row keeps is new: another server, and one with another
 * timeline, was started at another time. `search_path` names our schema.
 */
const READ_RUN = `
select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), d.oid, to_regclass('events')::oid) as run,
       to_regprocedure('verify_identity()') is not null as "isMigrated",
       coalesce(has_function_privilege(to_regprocedure('verify_identity()'), 'execute'), false) as "isGranted",
       current_setting('transaction_read_only')::boolean as "isReadOnly"
from pg_database d where d.datname = current_database()`;

type Run = {
  readonly run: string;
  readonly isMigrated: boolean;
  readonly isGranted: boolean;
  readonly isReadOnly: boolean;
};

/** Takes the row's lock. Numbers may be drawn as soon as it is committed. */
const VERIFY = 'select has_changed as "hasChanged", newest_at as "newestAt" from verify_identity()';

/** One for all pools of a process. */
export function createIdentity({ log }: { log: Logger }): Identity {
  let verified: string | undefined;
  let onChange = doNothing;

  async function verify(client: Pick<ClientBase, 'query'>): Promise<boolean> {
    const { rows } = await client.query<Run>(READ_RUN);
    const { run, isMigrated = false, isGranted = false, isReadOnly = true } = rows[0] ?? {};
    // Before our first migration there is nothing to write to; the migration raises the sequence itself.
    if (run === verified || !isMigrated) return true;
    if (isReadOnly || (!isGranted && verified === undefined)) return false;
    const answer = await client.query<{ hasChanged: boolean; newestAt: Date | null }>(VERIFY);
    const { hasChanged = false, newestAt = null } = answer.rows[0] ?? {};
    if (hasChanged) {
      log.info(
        { newestAt },
        'the database was started anew or is another one: its events get higher numbers from now on',
      );
    }
    if (run === verified) return true; // another session was faster
    const isFirst = verified === undefined;
    verified = run;
    if (!isFirst) onChange();
    return true;
  }

  return {
    verify,
    onChange: (listener) => {
      onChange = listener;
    },
  };
}

function doNothing(): void {}
