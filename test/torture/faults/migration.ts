// The start of a run: senders send already, and the replicas start and migrate the ledger of the program before.

import { type Fault, indexes } from './types.ts';

export const MIGRATION: Fault = {
  name: 'migration',
  subject: 'postgres',
  what: 'no replica runs yet; then all start at once and migrate a ledger that the program before 0010 filled',
  silences: true,
  unbinds: true, // some of its events were returned
  strike: ({ world: { replicas } }) =>
    Promise.resolve({
      replicas: indexes(replicas),
      heal: async () => {
        await Promise.all(replicas.map((replica) => replica.start()));
      },
    }),
};
