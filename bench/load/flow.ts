// Decides what is sent when: new notifications by the rule of the loop, those that wait for a connection, and repeats. Owns the
// connections. Counts and measures nothing itself.

import { monotonicUs } from '../clock.ts';
import { type Connection, openConnection, type Reply } from './connection.ts';
import type { LoadPlan } from './plan.ts';
import { createQueue } from './queue.ts';

export type Flow = {
  /** Sends what is due. To be called each millisecond. @throws Error if too many wait */
  readonly tick: () => void;
  /** Sends nothing new from now on. */
  readonly stop: () => void;
  /** Nothing is in flight or due, and nothing new will come. */
  readonly isOver: () => boolean;
  /** The number that are due, in flight, or to be repeated. */
  readonly open: () => number;
  readonly waiting: () => number;
  readonly mostWaiting: () => number;
  readonly close: () => void;
};

/** When more wait than this, the rate cannot be served. */
const WAITING_MAX = 200_000;
/** A sender repeats a failed delivery after a while. */
const REPEAT_AFTER_US = 500_000;
const SECOND_US = 1_000_000;

type Pending = { readonly number: number; readonly intendedUs: number };

/**
 * `next` returns the number of a new notification. `onReply` is called once for each that was sent, with the microseconds since
 * its intended time. Both get that time.
 */
export function createFlow(options: {
  plan: Pick<LoadPlan, 'loop' | 'ports' | 'deliveries' | 'onFailure' | 'localAddress' | 'freshConnections'>;
  next: () => number;
  request: (number: number) => Buffer;
  onSend: (number: number, intendedUs: number) => void;
  onReply: (number: number, reply: Reply, times: { us: number; intendedUs: number }) => void;
}): Flow {
  const { plan, next, request, onSend, onReply } = options;
  const { loop, ports, deliveries = Infinity } = plan;
  const waiting = createQueue<Pending>();
  const repeats = createQueue<Pending>();
  const free = createQueue<number>();
  const inFree = new Set<number>();
  const underWay = new Map<number, Pending>();
  const startUs = monotonicUs();
  let isStopped = false;
  let issued = 0;
  let mostWaiting = 0;

  const isExhausted = () => isStopped || issued >= deliveries;

  const open = () => underWay.size + waiting.length() + repeats.length();

  function fresh(intendedUs: number): Pending {
    issued += 1;
    return { number: next(), intendedUs };
  }

  function takeDue(): Pending | undefined {
    if ((repeats.first()?.intendedUs ?? Infinity) <= monotonicUs()) return repeats.take();
    const due = waiting.take();
    if (due !== undefined || isExhausted()) return due;
    return loop.kind === 'closed' ? fresh(monotonicUs()) : undefined;
  }

  function dispatch(): void {
    for (let slot = free.take(); slot !== undefined; slot = free.take()) {
      inFree.delete(slot);
      // Lost while idle. It reports again when it is free.
      if (connections[slot]?.isOpen() !== true) continue;
      const due = takeDue();
      if (due === undefined) return setFree(slot);
      underWay.set(slot, due);
      onSend(due.number, due.intendedUs);
      connections[slot]?.send(request(due.number));
    }
  }

  function setFree(slot: number): void {
    if (!inFree.has(slot)) free.add(slot);
    inFree.add(slot);
  }

  function settle(slot: number, reply: Reply): void {
    const sent = underWay.get(slot);
    underWay.delete(slot);
    if (sent === undefined) return;
    const { number, intendedUs } = sent;
    onReply(number, reply, { us: monotonicUs() - intendedUs, intendedUs });
    if (!reply.isGood && plan.onFailure === 'repeat')
      repeats.add({ number, intendedUs: monotonicUs() + REPEAT_AFTER_US });
  }

  /** Takes those whose intended time has passed since the last call. */
  function takeIntended(ratePerS: number): void {
    const elapsedUs = monotonicUs() - startUs;
    for (;;) {
      const intendedUs = (issued / ratePerS) * SECOND_US;
      if (intendedUs > elapsedUs || isExhausted()) break;
      waiting.add(fresh(startUs + intendedUs));
    }
    mostWaiting = Math.max(mostWaiting, waiting.length() - free.length());
    if (waiting.length() > WAITING_MAX) throw new Error('the rate cannot be served');
  }

  const slots = loop.kind === 'closed' ? loop.concurrency : loop.connections;
  const connections: readonly Connection[] = Array.from({ length: slots }, (_, slot) =>
    openConnection({
      port: ports[slot % ports.length] as number,
      localAddress: plan.localAddress,
      isFresh: plan.freshConnections,
      onReply: (reply) => settle(slot, reply),
      onFree: () => {
        setFree(slot);
        dispatch();
      },
    }),
  );

  return {
    tick: () => {
      if (loop.kind === 'open') takeIntended(loop.ratePerS);
      dispatch();
    },
    stop: () => {
      isStopped = true;
    },
    isOver: () => isExhausted() && open() === 0,
    open,
    waiting: waiting.length,
    mostWaiting: () => mostWaiting,
    close: () => {
      for (const connection of connections) connection.close();
    },
  };
}
