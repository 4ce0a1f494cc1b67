// The start of a run: senders send already, and the replicas start and make the schema.

import { type Fault, indexes } from './types.ts';

export const MIGRATION: Fault = {
  name: 'migration',
  subject: 'postgres',
  what: 'no replica runs yet; then all start at once and migrate an empty database',
  silences: true,
  strike: ({ world: { replicas } }) =>
    Promise.resolve({
      replicas: indexes(replicas),
      heal: async () => {
        await Promise.all(replicas.map((replica) => replica.start()));
      },
    }),
};
