// What makes the benchmark's servers slower, by itself: Postgres and RabbitMQ are slowed the same way, and the benchmark measures
// that they are before it measures anything else.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile } from '../../bench/compiler.ts';
import { answers, findFreePort } from '../../scripts/services/ports.ts';
import { until } from '../support/until.ts';

const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const folder = mkdtempSync(join(tmpdir(), 'tallyhook-slow-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Five writes to disk in another process, in milliseconds. */
function syncsMs(env: NodeJS.ProcessEnv): number {
  const script = `const { fdatasyncSync, openSync } = require('node:fs');
    const file = openSync(${JSON.stringify(join(folder, 'probe'))}, 'w');
    const startedMs = performance.now();
    for (let each = 0; each < 5; each++) fdatasyncSync(file);
    console.log(performance.now() - startedMs);`;
  const { stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', env });
  return Number(stdout);
}

test.runIf(hasCompiler)('with the library, each fdatasync takes so much longer', () => {
  const library = compile('cc', { source: 'postgres', kind: 'library', folder });
  expect(syncsMs({ LD_PRELOAD: library, COMMIT_DELAY_US: '100000' })).toBeGreaterThanOrEqual(500);
  expect(syncsMs({ LD_PRELOAD: library })).toBeLessThan(500);
});

test.runIf(hasCompiler)('the proxy passes every byte on, so much later', async () => {
  const program = compile('cc', { source: 'proxy', kind: 'program', folder });
  const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const target = (server.address() as AddressInfo).port;
  const port = await findFreePort();
  const proxy = spawn(program, [String(port), String(target), '30000'], { stdio: 'ignore' });
  try {
    await until('the proxy listens', async () => (await answers(port)) || undefined, { limitMs: 10_000 });
    const sent = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => at % 251));
    const socket = connect({ port, host: '127.0.0.1' });
    const startedMs = performance.now();
    socket.write('x');
    await once(socket, 'data');
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(29);

    const chunks: Buffer[] = [];
    let length = 0;
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
    });
    socket.write(sent);
    await until('all is back', () => length >= sent.length || undefined, { limitMs: 10_000 });
    expect(Buffer.concat(chunks).equals(sent)).toBe(true);
    socket.destroy();
  } finally {
    proxy.kill();
    await once(proxy, 'exit');
    server.close();
  }
});
