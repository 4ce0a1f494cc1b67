// Which events and replays a token that is limited to some sources may use.

import type { Transaction } from 'kysely';
import { parseEventId } from '../../event/index.ts';
import { type Database } from '../../ledger/index.ts';
import { findEvents } from '../events/by-id.queries.ts';
import { ApiError, type Caller, forbidden, notFound, scopeOf } from '../kernel/operation/operation.ts';
import type { ReplayRequest } from './changes.queries.ts';
import type { Replay } from './queries.ts';

const MAX_MISSING_SHOWN = 3;

/** @throws ApiError 403 for an event of a source that the token may not see, 404 for an event that does not exist */
export async function selectByIds(
  trx: Transaction<Database>,
  ids: readonly string[],
  caller: Caller,
): Promise<ReplayRequest> {
  for (const id of ids) scopeOf(caller, parseEventId(id)?.source);
  const found = await findEvents(trx, ids);
  const known = new Set(found.map(({ id }) => id));
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0) {
    const shown = missing.slice(0, MAX_MISSING_SHOWN).join(', ');
    const more = missing.length > MAX_MISSING_SHOWN ? ` and ${missing.length - MAX_MISSING_SHOWN} more` : '';
    throw new ApiError(404, 'not_found', `there is no event ${shown}${more}`);
  }
  return {
    selection: { event_ids: [...known], sequences: found.map(({ sequence }) => sequence) },
    sources: [...new Set(found.map(({ source }) => source))],
  };
}

/** @throws ApiError 404, and 403 for a replay of sources that the token may not see */
export function requireVisible(replay: Replay | undefined, caller: Caller): Replay {
  if (replay === undefined) throw notFound('replay');
  const allowed = caller.sources;
  const isWithin = allowed === null || (replay.sources?.every((source) => allowed.includes(source)) ?? false);
  if (!isWithin) throw forbidden();
  return replay;
}

export const onlySource = ({ sources }: Replay): string | null =>
  sources?.length === 1 ? (sources[0] ?? null) : null;
