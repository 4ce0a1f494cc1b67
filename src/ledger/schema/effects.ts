// What each migration does to tables that are in use, for `tallyhook migrate --plan`. It is measured and not written by hand:
// `migrations/effects.json` is made by a test that runs each migration and looks at its locks before the commit.

import measured from '../../../migrations/effects.json' with { type: 'json' };

/** From what takes no time to what takes the longer the larger the table is. */
export type Work = 'short' | 'scans the table' | 'builds an index' | 'rewrites the table';

/** The strongest lock on a table that was there before. */
export type Lock = {
  readonly table: string;
  /** As Postgres names it: `access exclusive`. */
  readonly mode: string;
  readonly work: Work;
};

/** Locks for which nobody waits are left out. */
export type Effects = {
  /** What the migration states in `schema_requirements`. */
  readonly oldestProgram: string;
  /** How long it waits for each of its locks: `3s`. Without a limit `0`. */
  readonly lockTimeout: string;
  readonly locks: readonly Lock[];
  /** Of its part that comes before the transaction; `locks` are those after it. */
  readonly ahead?: readonly Lock[];
  /** In place of both, where the part ahead does not run. */
  readonly withoutAhead?: readonly Lock[];
};

export const EFFECTS = measured as Readonly<Record<string, Effects>>;

/** What has to wait for each lock; the modes that are not here let everything through. */
export const WHO_WAITS: Readonly<Record<string, string>> = {
  'row exclusive': 'writes of the same rows',
  'share update exclusive': 'upkeep',
  share: 'writes',
  'share row exclusive': 'writes',
  exclusive: 'writes',
  'access exclusive': 'reads and writes',
};
