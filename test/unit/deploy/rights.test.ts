// deploy/rights/rabbitmq.sh before it asks a broker. What it makes at one is in test/deploy/broker-rights.test.ts.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../../deploy/rights/rabbitmq.sh', import.meta.url));

test.for([[[]], [['unknown']], [['subscribe']], [['subscribe', '']]])(
  'the arguments %j are wrong usage: exit code 2, and the right one',
  ([args = []]) => {
    const env = { PATH: process.env['PATH'], PASSWORD: 'given' };
    const { status, stdout, stderr } = spawnSync('sh', [SCRIPT, ...args], { env, encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: '',
      stderr: 'usage: PASSWORD=… rabbitmq.sh publish | subscribe QUEUE [KINDS] | monitor | look\n',
    });
  },
);
