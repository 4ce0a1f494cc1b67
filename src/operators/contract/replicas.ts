// Replicas: the fields that the API shows.

import { z } from 'zod';
import { timestamp } from './fields.ts';

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

export const ReplicaList = z
  .object({ items: z.array(Replica) })
  .meta({ id: 'ReplicaList', description: 'All replicas, the newest first.' });

export type Replica = z.infer<typeof Replica>;
