// How much is measured: everything, or in two minutes a little of each.

export type Scale = {
  readonly rounds: number;
  /** The baseline beside each variation, and not only where it is compared. */
  readonly withBaseline: boolean;
  /** Sizes of the baseline's pool, of which the best is kept. */
  readonly pools: readonly number[];
  readonly warmUpS: number;
  readonly durationS: number;
  readonly concurrencies: readonly number[];
  /** Of the peak, for the open loop. The half is the one with a target. */
  readonly shares: readonly number[];
  readonly ledgers: readonly number[];
  readonly replicas: readonly number[];
  readonly bodies: readonly number[];
  readonly duplicates: readonly number[];
  readonly queues: readonly ('quorum' | 'classic')[];
  readonly backlog: number;
  readonly outage: number;
  /** Of the outage's backlog, really delivered; the rest is put beside it by SQL. */
  readonly outageShare: number;
};

/** What one machine of two cores is said to take for good: backlog and outage are measured at this rate. */
export const RATED_PER_S = 500;

export const FULL: Scale = {
  rounds: 2,
  withBaseline: true,
  pools: [10, 20, 40],
  warmUpS: 4,
  durationS: 4,
  concurrencies: [1, 8, 32, 256],
  shares: [0.5, 0.75, 0.9],
  ledgers: [0, 1_000_000, 10_000_000],
  replicas: [1, 2, 4],
  bodies: [512, 4_096, 65_536],
  duplicates: [0, 0.5, 0.95],
  queues: ['quorum', 'classic'],
  backlog: 1_000_000,
  outage: RATED_PER_S * 3_600,
  outageShare: 0.1,
};

export const QUICK: Scale = {
  rounds: 1,
  withBaseline: false,
  pools: [],
  warmUpS: 1,
  durationS: 2,
  concurrencies: [],
  shares: [0.5],
  ledgers: [0, 100_000],
  replicas: [2],
  bodies: [4_096],
  duplicates: [0.5],
  queues: [],
  backlog: 50_000,
  outage: 15_000,
  outageShare: 0.5,
};
