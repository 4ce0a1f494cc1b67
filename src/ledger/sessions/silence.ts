// Statements whose time is over and that have no answer. Their connections stay as they are: to close one ends nothing on the
// server, where a commit that waits for a standby goes on, and another session would come beside it. But a network may have
// died unnoticed: so the server is asked, on a connection of its own, whether it still works on them.

import type { Client } from 'pg';
import type { PreparedClient } from './connecting.ts';
import type { Server } from './servers.ts';

/** Each question is a session for some milliseconds. A frozen server queues it. */
const ASK_EVERY_MS = 3_000;

/**
 * Sessions that are still at work. One that is idle has answered, and the answer was lost, or the statement never came: it is
 * ended, since its client is gone. One that is not there has ended before. Never one that is at work: a commit that is ended
 * while it waits for a standby becomes visible without it.
 */
const AT_WORK = `
with ours as materialized (
  select pid, state from pg_stat_activity where pid = any($1::int[]) and usename = current_user
)
select pid from ours where case when state like 'idle%' then not pg_terminate_backend(pid) else true end`;

export type Silence = {
  /** `end` is called when the server does not work on it. @returns what to call when the answer or the end came */
  readonly begin: (client: Pick<PreparedClient, 'session' | 'server'>, end: () => void) => () => void;
  readonly size: () => number;
};

type Waiting = { readonly pid: number; readonly server: Server | undefined; readonly end: () => void };

/** @param options.look for a later primary: then what waits on the former one ends without a question */
export function createSilence({
  connect,
  look,
}: {
  connect: (server: Server | undefined) => Client;
  look: () => Promise<void>;
}): Silence {
  const waiting = new Set<Waiting>();
  let isAsking = false;

  async function ask(server: Server | undefined, asked: readonly Waiting[]): Promise<void> {
    const client = connect(server);
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<{ pid: number }>(AT_WORK, [asked.map(({ pid }) => pid)]);
      const atWork = new Set(rows.map(({ pid }) => pid));
      for (const each of asked) if (waiting.has(each) && !atWork.has(each.pid)) each.end();
    } catch {
      // The server cannot be asked: it is away, or frozen. The next question comes.
    } finally {
      client.end().catch(() => {});
    }
  }

  async function askWhileWaiting(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    while (waiting.size > 0) {
      await look();
      for (const [server, asked] of Map.groupBy(waiting, (each) => each.server)) await ask(server, asked);
      await new Promise<void>((resolve) => setTimeout(resolve, ASK_EVERY_MS).unref());
    }
    isAsking = false;
  }

  return {
    begin: ({ session, server }, end) => {
      const one = { pid: session?.pid ?? 0, server, end };
      waiting.add(one);
      void askWhileWaiting();
      return () => void waiting.delete(one);
    },
    size: () => waiting.size,
  };
}
