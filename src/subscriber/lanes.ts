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

/** Waits without a place among those that run, and takes one again. The item's lane stays its own. */
export type Rest = (wait: Promise<unknown>) => Promise<void>;

/** `run` must not reject. A lane that waits longest for its turn is next. */
export function createLanes<Item>(options: {
  /** How many items run at once. */
  readonly concurrency: number;
  readonly run: (item: Item, rest: Rest) => Promise<void>;
}): Lanes<Item> {
  const waiting = new Map<string, Item[]>();
  const running = new Set<string>(); // lanes with an item that runs or rests
  const turns: string[] = []; // lanes that wait for their turn
  const rested: (() => void)[] = []; // items that wait for a place again
  const idlers = new Set<() => void>();
  let places = options.concurrency;
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
    while (places > 0) {
      const goOn = rested.shift();
      const lane = goOn === undefined ? turns.shift() : undefined;
      if (goOn !== undefined) {
        places -= 1;
        goOn();
      } else if (lane === undefined) {
        return;
      } else if (!running.has(lane)) {
        // Otherwise it asks for a turn again at its end.
        const item = take(lane);
        if (item !== undefined) void work(lane, item);
      }
    }
  }

  function take(lane: string): Item | undefined {
    const items = waiting.get(lane);
    const item = items?.shift();
    if (items?.length === 0) waiting.delete(lane);
    return item;
  }

  async function work(lane: string, item: Item): Promise<void> {
    places -= 1;
    running.add(lane);
    await options.run(item, rest);
    places += 1;
    running.delete(lane);
    if (waiting.has(lane)) turns.push(lane);
    begin();
    if (running.size > 0) return;
    for (const resolve of idlers) resolve();
    idlers.clear();
  }

  async function rest(wait: Promise<unknown>): Promise<void> {
    places += 1;
    begin();
    await wait;
    if (places > 0 || isClosed) {
      places -= 1;
      return;
    }
    await new Promise<void>((resolve) => {
      rested.push(resolve);
    });
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

  function close(): number {
    isClosed = true;
    const dropped = dropWaiting(() => true);
    places += rested.length; // they only have to end
    begin();
    return dropped;
  }

  return {
    push,
    dropWaiting,
    close,
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
