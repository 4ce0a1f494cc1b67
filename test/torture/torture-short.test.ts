// The shortest run: the three processes that can die, each killed in the midst of its work.

import { expect, test } from 'vitest';
import { KEPT, runFaults, TORTURE_LIMIT } from './kept.ts';

test(
  'every promise is kept while Postgres, RabbitMQ and the leader are killed (seed 3)',
  TORTURE_LIMIT,
  async () => {
    expect(await runFaults(3, ['postgres-kill', 'rabbitmq-kill', 'hand-off-kill'])).toEqual(KEPT);
  },
);
