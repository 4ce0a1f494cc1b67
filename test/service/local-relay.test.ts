// The relay of a local run takes its ports while other relays of this machine may take them, too.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startOnFreePorts } from '../../scripts/local-ports.ts';
import { NO_LOG, startRelay } from '../../scripts/relay.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { amqpUrl, UNHEARD } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { createFolder } from '../support/folder.ts';
import { INHERITED } from '../support/replica.ts';
import { SECRET } from '../support/sender.ts';

/** Answers like a relay that is ready. @returns its port */
async function startForeignRelay(): Promise<string> {
  const server: Server = createServer((_request, response) => response.end('{"ready":true}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return String((server.address() as AddressInfo).port);
}

/** What `startRelay` needs, but for ports. */
async function prepare() {
  const guard = createGuard();
  onTestFinished(guard.close);
  const folder = await createFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const database = await createTestDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const env = {
    ...INHERITED,
    HOST: '127.0.0.1',
    DATABASE_URL: database.url,
    AMQP_URL: amqpUrl(),
    AMQP_EXCHANGE: UNHEARD,
    SIGNING_SECRETS: SECRET,
  };
  return { guard, env, logFile: folder.path('relay.log') };
}

const freePort = async () => String(await findFreePort());

const freePorts = async () => ({ PORT: await freePort(), OPERATOR_PORT: await freePort() });

test.for([[['PORT', 'OPERATOR_PORT']], [['PORT']], [['OPERATOR_PORT']]] as const)(
  'another relay that answers on %j is not taken for ours, and other ports are chosen',
  async ([names]) => {
    const { guard, env, logFile } = await prepare();
    const start = (ports: Awaited<ReturnType<typeof freePorts>>) =>
      startRelay(guard, { env: { ...env, ...ports }, logFile });
    const free = await freePorts();
    const taken = { ...free };
    for (const name of names) taken[name] = await startForeignRelay();
    await expect(start(taken)).rejects.toThrow('EADDRINUSE');

    const choices = [taken, free];
    const relay = await startOnFreePorts(async () => choices.shift() ?? free, start);

    expect(choices).toEqual([]);
    expect(relay.hasExited()).toBe(false);
    const { status } = await fetch(`http://127.0.0.1:${free.OPERATOR_PORT}/readyz`);
    expect(status).toBe(200);
  },
);

test('ports are chosen a few times, and only where one was taken', async () => {
  let choices = 0;
  const startWith = (message: string) => {
    choices = 0;
    return startOnFreePorts(
      async () => ({ PORT: String((choices += 1)), OPERATOR_PORT: '0' }),
      async () => {
        throw new Error(message);
      },
    );
  };
  await expect(startWith('listen EADDRINUSE')).rejects.toThrow('EADDRINUSE');
  expect(choices).toBe(5);
  await expect(startWith('another fault')).rejects.toThrow('another fault');
  expect(choices).toBe(1);
});

test('a relay that should log nothing below errors is found ready all the same', async () => {
  const { guard, env, logFile } = await prepare();
  const ports = { ...(await freePorts()), LOG_LEVEL: 'error' };
  const relay = await startRelay(guard, { env: { ...env, ...ports }, logFile });
  expect(relay.hasExited()).toBe(false);
});

test('a relay without a log, as in the benchmark, is found ready when its ports answer', async () => {
  const { guard, env } = await prepare();
  const relay = await startRelay(guard, { env: { ...env, ...(await freePorts()) }, logFile: NO_LOG });
  expect(relay.hasExited()).toBe(false);
});
