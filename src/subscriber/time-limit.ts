// One call with a limit of time. First its signal aborts. What goes on all the same is given up a little later: it may still run,
// but nobody waits for it.

import { TimeLimitError } from './errors.ts';

export type Limit = {
  readonly signal: AbortSignal;
  /** The promise's result; rejects when it is given up. */
  readonly orGiveUp: <Result>(promise: Promise<Result>) => Promise<Result>;
};

/** From the abort until nobody waits any more: enough to roll back and to close a socket. */
export const SETTLE_MS = 5_000;

/**
 * @param early aborts the call before its limit
 * @throws what `run` throws; TimeLimitError if it was given up
 */
export async function withTimeLimit<Result>(
  { limitMs, early, settleMs = SETTLE_MS }: { limitMs: number; early: AbortSignal; settleMs?: number },
  run: (limit: Limit) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const givenUp = Promise.withResolvers<never>();
  givenUp.promise.catch(() => {});
  let giveUp: NodeJS.Timeout | undefined;
  const abort = (reason: unknown) => {
    if (controller.signal.aborted) return;
    controller.abort(reason);
    giveUp = setTimeout(() => givenUp.reject(reason), settleMs);
  };
  const onEarly = () => abort(early.reason);
  const timer = setTimeout(
    () => abort(new TimeLimitError(`the handler did not end within ${limitMs} ms`)),
    limitMs,
  );
  if (early.aborted) onEarly();
  else early.addEventListener('abort', onEarly, { once: true });
  const orGiveUp = <Of>(promise: Promise<Of>) => Promise.race([promise, givenUp.promise]);
  try {
    return await orGiveUp(run({ signal: controller.signal, orGiveUp }));
  } finally {
    clearTimeout(timer);
    clearTimeout(giveUp);
    early.removeEventListener('abort', onEarly);
  }
}
