// Runs items of one lane one after another, in the order in which they came, and several lanes at once. A lane exists while it
// has items. Holds as many items as are pushed: the broker's prefetch limits them.

export type Lanes<Item> = {
  readonly push: (lane: string, item: Item) => void;
  /** Forgets items that have not begun. @returns how many */
  readonly dropWaiting: (isDropped: (item: Item) => boolean) => number;
  /** Forgets what has not begun, and begins nothing any more. @returns how many it has forgotten */
  readonly close: () => number;
  /** Resolves when nothing runs. */
  readonly idle: () => Promise<void>;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

/** `run` must not reject. A lane that waits longest for its turn is next. */
export function createLanes<Item>(options: {
  /** How many lanes run at once. */
  readonly concurrency: number;
  readonly run: (item: Item) => Promise<void>;
}): Lanes<Item> {
  const waiting = new Map<string, Item[]>();
  const running = new Set<string>();
  const turns: string[] = []; // lanes that wait for their turn
  const idlers = new Set<() => void>();
  let isClosed = false;

  function push(lane: string, item: Item): void {
    if (isClosed) return;
    const items = waiting.get(lane);
    if (items !== undefined) {
      items.push(item);
      return;
    }
    waiting.set(lane, [item]);
    if (running.has(lane)) return;
    turns.push(lane);
    begin();
  }

  function begin(): void {
    while (running.size < options.concurrency) {
      const lane = turns.shift();
      if (lane === undefined) return;
      if (running.has(lane)) continue; // it asks for a turn again at its end
      const item = take(lane);
      if (item !== undefined) void work(lane, item);
    }
  }

  function take(lane: string): Item | undefined {
    const items = waiting.get(lane);
    const item = items?.shift();
    if (items?.length === 0) waiting.delete(lane);
    return item;
  }

  async function work(lane: string, item: Item): Promise<void> {
    running.add(lane);
    await options.run(item);
    running.delete(lane);
    if (waiting.has(lane)) turns.push(lane);
    begin();
    if (running.size > 0) return;
    for (const resolve of idlers) resolve();
    idlers.clear();
  }

  function dropWaiting(isDropped: (item: Item) => boolean): number {
    let dropped = 0;
    for (const [lane, items] of waiting) {
      const kept = items.filter((item) => !isDropped(item));
      dropped += items.length - kept.length;
      if (kept.length > 0) waiting.set(lane, kept);
      else waiting.delete(lane);
    }
    return dropped;
  }

  return {
    push,
    dropWaiting,
    close: () => {
      isClosed = true;
      return dropWaiting(() => true);
    },
    idle: () =>
      running.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idlers.add(resolve);
          }),
    counts: () => ({
      running: running.size,
      waiting: [...waiting.values()].reduce((sum, items) => sum + items.length, 0),
    }),
  };
}
