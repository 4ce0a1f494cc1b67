// The bodies of exported deliveries: read a few at a time, however large they are.

import { type Kysely, sql } from 'kysely';
import type { Database } from '../../ledger/index.ts';

export type Exported = {
  readonly id: string;
  readonly received_at: string;
  readonly body_bytes: number | null;
};
export type WithBody = { readonly body: string | null; readonly body_base64: string | null };

/** In memory at one time, and once more as text. One body is read whatever its size. */
const BODIES_BYTES = 2 * 1024 * 1024;
/** The API's times are cut to a place that the database's are not. */
const SLACK_MS = 1_000;

/** Deliveries in portions whose bodies fit into memory, each with its body: as text, or in base64 where it is not UTF-8. */
export async function* withBodies<T extends Exported>(
  slice: readonly T[],
  read: (portion: readonly Exported[]) => Promise<ReadonlyMap<string, Buffer>>,
): AsyncGenerator<readonly (T & WithBody)[]> {
  for (const portion of portionsOf(slice)) {
    const bodies = await read(portion);
    yield portion.map((delivery) => ({ ...delivery, ...asText(bodies.get(delivery.id)) }));
  }
}

function portionsOf<T extends Exported>(slice: readonly T[]): T[][] {
  const portions: T[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const delivery of slice) {
    bytes += delivery.body_bytes ?? 0;
    if (bytes > BODIES_BYTES) {
      portions.push([]);
      bytes = delivery.body_bytes ?? 0;
    }
    portions.at(-1)?.push(delivery);
  }
  return portions;
}

function asText(body: Buffer | undefined): WithBody {
  if (body === undefined) return { body: null, body_base64: null };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    return { body: text, body_base64: null };
  } catch {
    return { body: null, body_base64: body.toString('base64') };
  }
}

/** By the primary key, in the partitions of their days. */
export async function readBodies(
  db: Kysely<Database>,
  portion: readonly Exported[],
): Promise<ReadonlyMap<string, Buffer>> {
  const times = portion.map(({ received_at: at }) => Date.parse(at));
  const [from, to] = [Math.min(...times) - SLACK_MS, Math.max(...times) + SLACK_MS];
  const { rows } = await sql<{ id: string; body: Buffer }>`
    select t.id, t.body from deliveries t
    where t.id = any(${portion.map(({ id }) => id)}::uuid[]) and t.body is not null
      and t.received_at >= ${new Date(from)} and t.received_at <= ${new Date(to)}`.execute(db);
  return new Map(rows.map(({ id, body }) => [id, body]));
}
