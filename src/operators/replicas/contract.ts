// Replicas: the fields that the API shows.

import { z } from 'zod';
import { timestamp } from '../kernel/list/fields.contract.ts';

export const Replica = z
  .object({
    id: z.uuid().describe('As `relay_id` of publications has it.'),
    version: z.string().describe('Of the program that it runs.'),
    host: z.string().describe('The name of its machine or container.'),
    started_at: timestamp,
    seen_at: timestamp.describe('Its last heartbeat. There is one every ten seconds.'),
    leads: z.boolean().describe('It leads the relay.'),
    is_late: z.boolean().describe('Three heartbeats are missing: it was killed, or cannot reach Postgres.'),
  })
  .meta({ id: 'Replica', description: 'A process of the service.' });

export const DatabaseLoss = z
  .object({
    at: timestamp.describe('When a replica found it out.'),
    acknowledged_at: timestamp.describe('When a delivery that is gone was acknowledged.'),
    kept_until: timestamp
      .nullable()
      .describe('When the newest event that is left of the time before was recorded. Null if there is none.'),
  })
  .meta({
    id: 'DatabaseLoss',
    description: 'The database has lost deliveries that were acknowledged, as after a restore.',
  });

export const ReplicaList = z
  .object({
    items: z.array(Replica),
    loss: DatabaseLoss.nullable().describe('The last one of the last seven days.'),
  })
  .meta({ id: 'ReplicaList', description: 'All replicas, the newest first.' });

export type DatabaseLoss = z.infer<typeof DatabaseLoss>;
export type Replica = z.infer<typeof Replica>;
