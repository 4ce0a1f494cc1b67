// The form of a dedup store. Each store makes an event take effect once: `memoryDedup`, `postgresDedup`, or your own.

export type DedupContext = {
  /** The queue's name. Subscribers that share a store are kept apart by it: each event takes effect once for each queue. */
  readonly queue: string;
  /** Aborts when the time of this attempt is over: release what you hold, and reject. */
  readonly signal: AbortSignal;
  /** The handler's time limit. A transaction needs no more than this and a few seconds. */
  readonly timeLimitMs: number;
};

/** `Tx` is what the store lends the handler as `delivery.tx`. */
export type DedupStore<Tx = undefined> = {
  /**
   * Calls `effect` unless the id is remembered, and remembers the id if `effect` succeeded. Best together: in one transaction.
   *
   * If `effect` rejects, nothing is remembered and the rejection is passed on. If it rejects before it calls `effect`, it is taken to be
   * away: the event is tried again for as long as it takes. While the same id is in work elsewhere, it waits
   * for the result: `duplicate` means that the other one succeeded.
   */
  readonly once: (
    id: string,
    effect: (tx: Tx) => Promise<void>,
    context: DedupContext,
  ) => Promise<'done' | 'duplicate'>;
};

/** @throws TypeError that names an option that there is not: a mistake in writing would take the default */
export function refuseUnknown(store: string, unknown: object): void {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw new TypeError(`${store} has no option '${name}'`);
}
