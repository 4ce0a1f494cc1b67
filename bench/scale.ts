// How much is measured: everything, or a little of each case in some minutes.

import type { Flood } from '../test/support/floods.ts';

export type Scale = {
  readonly rounds: number;
  /** Sizes of the baseline's pool, from which the best is chosen for each load. */
  readonly pools: readonly number[];
  /** The longest warm-up. It ends earlier when the subject's CPU time for an event is steady (settling.ts). */
  readonly warmUpS: number;
  /** The same where CPU times are compared: after 20 s, V8 still makes an event cheaper. */
  readonly longWarmUpS: number;
  /** The warm-up where nothing tells when it is enough: choosing a pool, the bare publisher, pgbench, floods. */
  readonly shortWarmUpS: number;
  readonly durationS: number;
  /** The window of a run that chooses a pool. */
  readonly tuningS: number;
  readonly intakes: readonly number[];
  readonly concurrencies: readonly number[];
  /** Commits that take so much longer, and the connections. */
  readonly commits: readonly { readonly delayMs: number; readonly connections: number }[];
  /** Connections of senders while Postgres and RabbitMQ are `DISTANCE_MS` away. */
  readonly distances: readonly number[];
  /** Rates of the open loop, as shares of the peak. The one with a target is a half. */
  readonly shares: readonly number[];
  readonly ledgers: readonly number[];
  readonly replicas: readonly number[];
  readonly bodies: readonly number[];
  readonly duplicates: readonly number[];
  readonly queues: readonly ('quorum' | 'classic')[];
  readonly backlog: number;
  readonly outage: number;
  /** The share of the outage's backlog that is delivered over HTTP. The rest is added by SQL. */
  readonly outageShare: number;
  readonly floods: readonly FloodSpec[];
  readonly floodS: number;
};

export type FloodSpec = Required<Pick<Flood, 'kind' | 'connections' | 'reopenAfterMs'>> & {
  readonly name: string;
  readonly face: 'intake' | 'operators';
  readonly isQuick?: boolean;
};

/** The sustained rate that a machine of two cores has to take. Backlog and outage are measured at it. */
export const RATED_PER_S = 500;

/** So few that an answer is there long before the next delivery, on any machine. */
export const LONE_PER_S = 20;
export const LONE = `${LONE_PER_S}/s on one connection`;

/** From a request to its answer, as between two zones of a data centre. */
export const DISTANCE_MS = 1;

/** A client that pipelines is disconnected early and connects again at once. */
const PIPELINING = { kind: 'pipelining', connections: 200, reopenAfterMs: 10 } as const;
const IDLE = { kind: 'idle', reopenAfterMs: 200 } as const;
const STALLED = { face: 'intake', reopenAfterMs: 200 } as const;
const CLAIMED = { name: 'that stall in a body and claim a signature', kind: 'claimed', ...STALLED } as const;

/** Above the defaults' limits: 4,096 connections, 1,100 an address, 256 at the operators' port, 64 MiB of bodies. */
const FLOODS: readonly FloodSpec[] = [
  { name: 'that pipeline at the intake', face: 'intake', isQuick: true, ...PIPELINING },
  { name: 'that pipeline at the operators’ port', face: 'operators', ...PIPELINING },
  { name: 'idle at the intake', face: 'intake', connections: 5_000, isQuick: true, ...IDLE },
  { name: 'idle at the operators’ port', face: 'operators', connections: 600, ...IDLE },
  { connections: 1_500, isQuick: true, ...CLAIMED },
  { connections: 4_000, ...CLAIMED },
  { name: 'that stall in an unsigned body', kind: 'unsigned', connections: 1_500, ...STALLED },
  { name: 'whose deliveries are refused', kind: 'refused', connections: 64, isQuick: true, ...STALLED },
];

export const FULL: Scale = {
  rounds: 3,
  // Postgres has 100 connections by default, some of which are kept for others.
  pools: [10, 20, 40, 90],
  warmUpS: 20,
  longWarmUpS: 40,
  shortWarmUpS: 3,
  durationS: 6,
  tuningS: 3,
  intakes: [64, 256],
  concurrencies: [1, 8, 32, 256, 1_000],
  commits: [
    { delayMs: 2, connections: 64 },
    { delayMs: 2, connections: 256 },
    { delayMs: 10, connections: 256 },
  ],
  distances: [64, 256],
  shares: [0.5, 0.75, 0.9],
  ledgers: [0, 1_000_000, 10_000_000],
  replicas: [1, 2, 4],
  bodies: [512, 4_096, 65_536],
  duplicates: [0, 0.5, 0.95],
  queues: ['quorum', 'classic'],
  backlog: 1_000_000,
  outage: RATED_PER_S * 3_600,
  outageShare: 0.1,
  floods: FLOODS,
  floodS: 8,
};

export const QUICK: Scale = {
  rounds: 1,
  pools: [],
  warmUpS: 1,
  longWarmUpS: 1,
  shortWarmUpS: 1,
  durationS: 2,
  tuningS: 1,
  intakes: [64],
  concurrencies: [8, 1_000],
  commits: [{ delayMs: 10, connections: 256 }],
  distances: [64],
  shares: [0.5],
  ledgers: [0, 100_000],
  replicas: [2],
  bodies: [4_096],
  duplicates: [0.5],
  queues: [],
  backlog: 50_000,
  outage: 15_000,
  outageShare: 0.5,
  floods: FLOODS.filter(({ isQuick }) => isQuick),
  floodS: 4,
};
