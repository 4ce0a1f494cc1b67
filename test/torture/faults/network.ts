// Faults of the network: each of these modes on each of a replica's three links.

import type { Proxy } from '../../support/proxy.ts';
import { LINKS, type LinkName } from '../replica.ts';
import { type Fault, indexes, lasting, type Strike, victims } from './types.ts';

type Mode = {
  readonly verb: string;
  readonly what: string;
  readonly strike: (proxies: readonly Proxy[], how: Strike) => () => void;
};

const SLOW_MS = [40, 400] as const;
/** Any of these is in the middle of a handshake or of an HTTP answer. */
const HANDSHAKE_BYTES = [1, 600] as const;
const RESETS = [2, 6] as const;

const each = (proxies: readonly Proxy[], act: (proxy: Proxy) => void) => {
  for (const proxy of proxies) act(proxy);
};
const healAll = (proxies: readonly Proxy[]) => each(proxies, (proxy) => proxy.heal());

const modes: readonly Mode[] = [
  {
    verb: 'cut',
    what: 'open connections closed, new ones refused',
    strike: (proxies) => {
      each(proxies, (proxy) => proxy.refuse());
      each(proxies, (proxy) => proxy.cut());
      return () => healAll(proxies);
    },
  },
  {
    verb: 'half-open',
    what: 'open connections pass nothing on and stay open, new ones work',
    strike: (proxies, { random }) => {
      each(proxies, (proxy) => proxy.silence());
      const comesBack = random.chance(0.5);
      return () => {
        // Either the delayed bytes arrive after all, or the other end has forgotten the connection.
        if (!comesBack) each(proxies, (proxy) => proxy.reset());
        healAll(proxies);
      };
    },
  },
  {
    verb: 'slow',
    what: `every packet delayed by ${SLOW_MS[0]} to ${SLOW_MS[1]} ms`,
    strike: (proxies, { random }) => {
      const delayMs = random.whole(...SLOW_MS);
      each(proxies, (proxy) => proxy.slow(delayMs));
      return () => healAll(proxies);
    },
  },
  {
    verb: 'reset',
    what: 'open connections reset, several times',
    strike: (proxies, { random, forMs }) => {
      const times = Array.from({ length: random.whole(...RESETS) }, () => random.whole(0, forMs));
      const timers = times.map((ms) => setTimeout(() => each(proxies, (proxy) => proxy.reset()), ms));
      return () => {
        for (const timer of timers) clearTimeout(timer);
        healAll(proxies);
      };
    },
  },
  {
    verb: 'handshake',
    what: 'open connections closed; new ones cut, reset or stalled after the first bytes of the answer',
    strike: (proxies, { random }) => {
      const bytes = random.whole(...HANDSHAKE_BYTES);
      const how = random.pick(['cut', 'reset', 'stall'] as const);
      each(proxies, (proxy) => proxy.failAfterBytes(bytes, how));
      each(proxies, (proxy) => proxy.cut());
      return () => healAll(proxies);
    },
  },
];

const BETWEEN: Readonly<Record<LinkName, string>> = {
  sender: 'senders and replica',
  postgres: 'replica and Postgres',
  rabbitmq: 'replica and RabbitMQ',
};

/** Longer than the 10 s within which an answer is due, and than heartbeat and confirm deadline (40 s). */
const LONG_MS: Readonly<Partial<Record<LinkName, readonly [number, number]>>> = {
  postgres: [12_000, 15_000],
  rabbitmq: [45_000, 50_000],
};

const usualFaults: readonly Fault[] = LINKS.flatMap((link) =>
  modes.map(
    ({ verb, what, strike }): Fault => ({
      name: `${link}-link-${verb}`,
      subject: `${link} link`,
      what: `between ${BETWEEN[link]}: ${what}`,
      silences: link === 'sender',
      strike: async ({ world }, how) => {
        const touched = victims(world, how);
        const heal = strike(
          touched.map(({ links }) => links[link]),
          how,
        );
        return { replicas: indexes(touched), heal: async () => heal() };
      },
    }),
  ),
);

const longFaults: readonly Fault[] = LINKS.flatMap((link) => {
  const durationMs = LONG_MS[link];
  const usual = usualFaults.find(({ name }) => name === `${link}-link-half-open`);
  return durationMs === undefined || usual === undefined ? [] : [lasting(usual, durationMs)];
});

export const networkFaults: readonly Fault[] = [...usualFaults, ...longFaults];
