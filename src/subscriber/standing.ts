// Whether this consumer of a queue with a single active consumer gets the events, or waits to take over. RabbitMQ does not say so over
// AMQP: it is told from what can be seen.

import type { Tell } from './notices.ts';

/**
 * - `active`: events come here.
 * - `standby`: another consumer of the queue has them; this one takes over when that one leaves.
 * - `unknown`: not connected; or several consumers came at the same moment, and nothing has shown yet which of them is active.
 */
export type Standing = 'active' | 'standby' | 'unknown';

export type Seen = { readonly ready: number; readonly consumers: number };

export type Lookout = {
  readonly standing: () => Standing;
  /** Call it once the broker has answered that the queue is consumed. */
  readonly begin: () => void;
  /** An event came: that is proof. */
  readonly delivered: () => void;
  readonly end: () => void;
};

/** How soon a standby that no event reaches may say that it is alone. A look is a passive declaration, a few hundred bytes. */
const LOOK_MS = 5_000;
/** A first event may still be on its way at the first look. */
const LOOKS_WITHOUT_EVENT = 2;

/**
 * Looks until it is active: nothing takes that away as long as its channel lives.
 * @param hadOthers the queue surely has a single active consumer, and had consumers before this one: they are served first
 * @param look at the queue. May reject
 */
export function createLookout(options: {
  readonly queue: string;
  readonly hadOthers: boolean;
  readonly look: () => Promise<Seen>;
  readonly tell: Tell;
}): Lookout {
  const { queue, hadOthers, look, tell } = options;
  let standing: Standing = 'unknown';
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let passedBy = 0; // looks in a row at events that are ready and do not come

  function become(next: Standing, otherConsumers = 0): void {
    if (isOver || next === standing) return;
    const was = standing;
    standing = next;
    if (next === 'standby') tell({ type: 'standby', queue, otherConsumers });
    else if (was === 'standby') tell({ type: 'active', queue });
    if (next === 'active') end();
  }

  function judge({ ready, consumers }: Seen): void {
    passedBy = ready > 0 ? passedBy + 1 : 0;
    if (consumers === 1) become('active');
    else if (hadOthers || passedBy >= LOOKS_WITHOUT_EVENT) become('standby', consumers - 1);
  }

  function begin(): void {
    if (isOver) return;
    void look()
      .then(judge, () => {}) // the connection's own end is told elsewhere
      .then(() => {
        if (!isOver) timer = setTimeout(begin, LOOK_MS).unref();
      });
  }

  function end(): void {
    isOver = true;
    clearTimeout(timer);
  }

  return { standing: () => standing, begin, delivered: () => become('active'), end };
}
