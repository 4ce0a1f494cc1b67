// `tallyhook healthcheck`: what it asks, what it answers, and that it stays small.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { MAIN } from '../../../scripts/program.ts';
import { findFreePort } from '../../../scripts/services/ports.ts';
import { loadConfig } from '../../../src/config.ts';
import { runCommand } from '../../support/cli.ts';
import { NO_LOCAL_RUN, startProgram } from '../../support/replica.ts';
import { SECRET } from '../../support/sender.ts';
import { shareTestService } from '../../support/shared-service.ts';

const service = shareTestService();

/** As little as the service takes. */
const CONFIGURED = {
  DATABASE_URL: 'postgres://localhost/x',
  AMQP_URL: 'amqp://localhost',
  SIGNING_SECRETS: SECRET,
};

/** Answers every connection with this text, or never. */
async function startServer(answer?: string): Promise<AsyncDisposable & { readonly port: string }> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    if (answer !== undefined) socket.end(answer);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as { port: number };
  return {
    port: String(port),
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

test('a service that lives is told with exit code 0, by its operators’ port', async () => {
  const { port } = new URL(service().operators);
  const asked = await runCommand(['healthcheck'], { env: { OPERATOR_PORT: port } });
  expect(asked).toEqual({ code: 0, stdout: `http://127.0.0.1:${port}/livez answers with 200\n`, stderr: '' });
});

describe('exit code 1, and why, for', () => {
  test('a port on which nobody listens', async () => {
    const port = String(await findFreePort());
    const { code, stderr } = await runCommand(['healthcheck'], { env: { OPERATOR_PORT: port } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `http://127.0.0.1:${port}/livez does not answer: connect ECONNREFUSED 127.0.0.1:${port}\n`,
    });
  });

  test('a service that hangs', async () => {
    await using server = await startServer();
    const { code, stderr } = await runCommand(['healthcheck'], { env: { OPERATOR_PORT: server.port } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('nothing within') as string,
    });
  });

  test('any other answer', async () => {
    await using server = await startServer('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n');
    const { code, stderr } = await runCommand(['healthcheck'], { env: { OPERATOR_PORT: server.port } });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `http://127.0.0.1:${server.port}/livez answers with 503\n`,
    });
  });
});

test.for([
  [{}, 'http://127.0.0.1:8081/livez'],
  [{ OPERATOR_HOST: '0.0.0.0', OPERATOR_PORT: '9' }, 'http://127.0.0.1:9/livez'],
  [{ OPERATOR_HOST: '::', OPERATOR_PORT: '9' }, 'http://[::1]:9/livez'],
  [{ OPERATOR_HOST: '127.0.0.9', OPERATOR_PORT: '9' }, 'http://127.0.0.9:9/livez'],
] as const)('with %j it asks %s', async ([env, url]) => {
  const { stdout, stderr } = await runCommand(['healthcheck'], { env });
  expect(stdout + stderr).toContain(`${url} `);
});

test.for(['abc', '-1', '80.5', '65536'])(
  'the port %s is a wrong configuration for it as for the service: exit code 78',
  async (port) => {
    const { code, stderr } = await runCommand(['healthcheck'], { env: { OPERATOR_PORT: port } });
    const [fault] = stderr.match(/OPERATOR_PORT .*/) ?? [];
    expect(code).toBe(78);
    const load = () => loadConfig({ ...CONFIGURED, OPERATOR_PORT: port });
    expect(load).toThrow(expect.objectContaining({ faults: [fault] }));
  },
);

test('without variables it asks where the service listens without them', async () => {
  const { operator } = loadConfig(CONFIGURED);
  const { stdout, stderr } = await runCommand(['healthcheck']);
  expect(stdout + stderr).toContain(`http://${operator.host}:${operator.port}/livez `);
});

test('it loads no package, since it runs every few seconds beside the service', async () => {
  const look = `const { registerHooks } = process.getBuiltinModule('node:module');
registerHooks({ load: (url, context, next) => (process.stdout.write(url + '\\n'), next(url, context)) });`;
  const args = ['--import', `data:text/javascript,${encodeURIComponent(look)}`, MAIN, 'healthcheck'];
  await using command = startProgram(process.execPath, args, {
    env: { ...NO_LOCAL_RUN, OPERATOR_PORT: '9' },
  });
  expect(await command.exited).toMatchObject({ code: 1 });
  const loaded = command.stdout().trim().split('\n');
  expect(loaded.filter((url) => url.includes('/node_modules/'))).toEqual([]);
  expect(loaded.some((url) => url.endsWith('/cli/healthcheck.ts'))).toBe(true);
});
