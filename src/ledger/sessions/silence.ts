// Statements whose time is over and that have no answer. Their connections stay as they are: to close one ends nothing on the
// server, where a commit that waits for a standby goes on, and another session would come beside it. But a network may have
// died unnoticed: so the server is asked, on a connection of its own, whether it still works on them.

import type { Client } from 'pg';

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
  readonly begin: (pid: number, end: () => void) => () => void;
  readonly size: () => number;
};

export function createSilence({ connect }: { connect: () => Client }): Silence {
  const waiting = new Set<{ readonly pid: number; readonly end: () => void }>();
  let isAsking = false;

  async function ask(): Promise<void> {
    const asked = [...waiting];
    const client = connect();
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
      await ask();
      await new Promise<void>((resolve) => setTimeout(resolve, ASK_EVERY_MS).unref());
    }
    isAsking = false;
  }

  return {
    begin: (pid, end) => {
      const one = { pid, end };
      waiting.add(one);
      void askWhileWaiting();
      return () => void waiting.delete(one);
    },
    size: () => waiting.size,
  };
}
