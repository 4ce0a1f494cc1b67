// Calls the heartbeat address of ALERTS_FILE once a minute, while this replica holds the lease of the watch and all is well. Outside
// somebody waits for these calls, and tells people when they stop: of the worst outages nothing in here could tell.

import type { Parts } from '../../base/parts.ts';
import type { AlertsFile } from './channels-file.ts';
import type { HeldLease } from './due.ts';
import type { Send } from './requests.ts';

export const CALL_INTERVAL_MS = 60_000;
/** How often it is looked whether a call is due: the first one comes soon after the lease was taken, or after all was well again. */
const POLL_MS = 1_000;

export type HeartbeatCalls = {
  readonly start: () => void;
  /** Begins no more, and resolves when none is under way. Never rejects. */
  readonly end: () => Promise<void>;
};

export function createHeartbeatCalls({
  alerts,
  lease,
  isWell,
  send,
  metrics,
  now,
  log,
  intervalMs = CALL_INTERVAL_MS,
}: Pick<Parts, 'metrics' | 'now' | 'log'> & {
  alerts: Pick<AlertsFile, 'current'>;
  lease: Pick<HeldLease, 'isLeading'>;
  isWell: () => boolean;
  send: Send;
  intervalMs?: number;
}): HeartbeatCalls {
  let timer: NodeJS.Timeout | undefined;
  let calling: Promise<void> | undefined;
  let calledAtMs = Number.NEGATIVE_INFINITY;
  let isFailing = false;

  async function call(url: string): Promise<void> {
    const answer = await send(url);
    if (answer === undefined) return; // cut by the stop
    metrics.heartbeatCalls.inc({ result: answer.isTaken ? 'ok' : 'failed' });
    if (!answer.isTaken && !isFailing)
      log.warn({ error: answer.error }, 'the heartbeat address does not take our calls');
    if (answer.isTaken && isFailing) log.info('the heartbeat address takes our calls again');
    isFailing = !answer.isTaken;
  }

  function look(): void {
    const url = alerts.current().heartbeatUrl;
    const isDue = calling === undefined && now() - calledAtMs >= intervalMs;
    if (url === undefined || !isDue || !lease.isLeading() || !isWell()) return;
    calledAtMs = now();
    calling = call(url).finally(() => {
      calling = undefined;
    });
  }

  return {
    start: () => {
      timer = setInterval(look, Math.min(POLL_MS, intervalMs));
    },
    end: async () => {
      clearInterval(timer);
      await calling;
    },
  };
}
