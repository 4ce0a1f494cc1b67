// Looks once more at conflicts. Before json.ts was there, V8 could mangle keys with escapes, and the hash of an event's
// content was made from what it had made of them: its repeats would conflict for ever. What it was depends on all that
// the process had read before, so the first body is understood again; after RETENTION_DAYS it is gone, and a conflict stays.

import type { Logger } from 'pino';
import { describeError } from '../errors.ts';
import type { DatabaseConnection } from './database.ts';
import { correctContentHash, type FirstBody, firstBodiesOf } from './first-bodies.ts';
import type { DeliveryRecord, RecordedDelivery } from './record.ts';
import { type AuthenticBody, understand } from './understand.ts';

/** The content hashes of deliveries that conflict with their events, by delivery. */
export type Conflicts = ReadonlyMap<string, Buffer>;

/** What was recorded, with the outcomes that the ledger has now. Never rejects: where the look fails, a conflict stays one. */
export type SecondLook = (
  batch: readonly DeliveryRecord[],
  recorded: RecordedDelivery[],
) => Promise<RecordedDelivery[]>;

export function createSecondLook({
  execute,
  log,
}: {
  execute: DatabaseConnection['execute'];
  log: Logger;
}): SecondLook {
  return async (batch, recorded) => {
    const conflicts = new Map<string, Buffer>();
    for (const [index, delivery] of batch.entries()) {
      if (delivery.verdict === 'event' && recorded[index]?.outcome === 'conflict')
        conflicts.set(delivery.id, delivery.event.contentHash);
    }
    if (conflicts.size === 0) return recorded;
    const duplicates = new Set<string>();
    try {
      for await (const id of findDuplicates(execute, conflicts)) duplicates.add(id);
    } catch (error) {
      log.warn({ err: describeError(error) }, 'conflicts could not be looked at once more, and stay');
    }
    return recorded.map((each, index) =>
      duplicates.has(batch[index]?.id ?? '') ? { ...each, outcome: 'duplicate' } : each,
    );
  };
}

/**
 * Those that say the same as the body by which their event was accepted, once the ledger says so, too. One query for
 * all, and a statement for each event whose hash was wrong.
 * @throws whatever the driver throws; what was found before holds.
 */
async function* findDuplicates(
  execute: DatabaseConnection['execute'],
  conflicts: Conflicts,
): AsyncGenerator<string, void, undefined> {
  for (const first of await firstBodiesOf(execute, [...conflicts.keys()])) {
    const alike = findAlike(first, conflicts);
    if (alike !== undefined && (await correctContentHash(execute, first, alike))) yield* alike.ids;
  }
}

/** Those that say the same as this body, as far as there are some. Takes as long as understanding the body does. */
export function findAlike(
  { body, ids }: FirstBody,
  conflicts: Conflicts,
): { contentHash: Buffer; ids: readonly string[] } | undefined {
  const contentHash = contentHashOf(body);
  if (contentHash === undefined) return undefined;
  const alike = ids.filter((id) => conflicts.get(id)?.equals(contentHash));
  return alike.length > 0 ? { contentHash, ids: alike } : undefined;
}

/** Undefined for a body that the present schemas do not understand. */
function contentHashOf(body: Buffer): Buffer | undefined {
  const understood = understand(body as AuthenticBody); // an event was accepted by it
  return understood.outcome === 'event' ? understood.event.contentHash : undefined;
}
