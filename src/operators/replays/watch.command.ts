// Watches a replay until it is no longer running. Ctrl-C ends the watching; the service goes on with the replay.

import { setTimeout as sleep } from 'node:timers/promises';
import { createBar } from '../../terminal/bar.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { clean, count, counted, duration, orMore } from '../../terminal/readable.ts';
import type { Items } from '../client/index.ts';
import type { Api } from '../kernel/api.command.ts';
import { colourOf } from '../kernel/list/looks.command.ts';

type Replay = Items['replays'];

/** Well below the API's limit of requests a minute, and often enough for a bar. */
const POLL_MS = 1_000;

/** Exit code 0 if all events are on the bus, or if it was left running; otherwise 1. */
export async function watchReplay(io: Io, { client }: Api, replay: Replay): Promise<number> {
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  io.signals.once('SIGINT', stop);
  const bar = createBar(io, {
    ...(replay.matched_exactly && { total: replay.counts.matched }),
    unit: 'events',
  });
  let current = replay;
  try {
    for (;;) {
      bar.update(settled(current), trouble(current));
      if (current.state !== 'running') break;
      await sleep(POLL_MS, undefined, { signal: stopped.signal });
      current = await client.replay(replay.id, { signal: stopped.signal });
    }
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    bar.stop();
    io.complain(
      `the replay continues: see "tallyhook replays show ${replay.id}", or end it with "tallyhook replays cancel"`,
    );
    return 0;
  } finally {
    bar.stop();
    io.signals.off('SIGINT', stop);
  }
  printReplay(io, current);
  return isComplete(current) ? 0 : 1;
}

const settled = ({ counts }: Replay) => counts.confirmed + counts.returned + counts.failed + counts.skipped;

function isComplete({ state, counts }: Replay): boolean {
  return state === 'finished' && counts.returned + counts.failed + counts.skipped === 0;
}

function trouble({ counts }: Replay): string {
  const parts = (['returned', 'failed', 'skipped'] as const).filter((name) => counts[name] > 0);
  return parts.map((name) => `${count(counts[name])} ${name}`).join(', ');
}

/** A sentence for a person, one line of JSON otherwise. */
export function printReplay(io: Io, replay: Replay): void {
  if (!io.stdout.isTTY) {
    io.say(toJson(replay));
    return;
  }
  const { id, state, counts, queue, paused_because: because, matched_exactly: isExact } = replay;
  const where = queue === null ? 'on the exchange' : `in queue ${clean(queue)}`;
  const rest = trouble(replay);
  const took = duration(Date.parse(replay.finished_at ?? replay.updated_at) - Date.parse(replay.created_at));
  io.say(
    `replay ${id} ${io.paint(colourOf(state) ?? 'bold', state)}: ${count(counts.confirmed)} of ${orMore(counted(counts.matched, 'event'), isExact)} ${where}${rest === '' ? '' : `, ${rest}`} (${took})`,
  );
  if (because !== null) io.say(`paused because: ${clean(because)}`);
  if (state === 'paused') io.say(`continue it with "tallyhook replays resume ${id}"`);
}
