// Two replicas behind each proxy of deploy/, restarted in turn while senders send: no answer but 202.

import { Agent } from 'node:https';
import { expect, test } from 'vitest';
import { findFreePort } from '../../scripts/services/ports.ts';
import { createTestDatabase } from '../support/database.ts';
import { PROXIES, PROXY_NAMES, startDeployedProxy } from '../support/deployed-proxies.ts';
import { eventIds } from '../support/facts.ts';
import { type Answer, post } from '../support/load.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { completed, newJobId } from '../support/sender.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';

const EACH_MS = 50;

/** As the page has it for each. */
const SHUTDOWN_DELAY_MS = { nginx: '0', haproxy: '3000', caddy: '3000' } as const;

/** One new delivery every 50 ms, whether the last one is answered or not. @returns what ends it, with all answers */
function sendSteadily(url: string, agent: Agent): () => Promise<Answer[]> {
  const sent: Promise<Answer>[] = [];
  const sending = setInterval(
    () => sent.push(post(`${url}/webhooks`, completed(newJobId()), { agent })),
    EACH_MS,
  );
  return async () => {
    clearInterval(sending);
    const answers = await Promise.all(sent);
    agent.destroy();
    return answers;
  };
}

const refused = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status !== 202).map(({ status, error, ms }) => ({ status, error, ms }));

test.for(PROXY_NAMES)('%s: two replicas restarted in turn', async (name) => {
  await using database = await createTestDatabase();
  const ports = [await findFreePort(), await findFreePort()] as const;
  const start = (port: number) =>
    startReplica({
      databaseUrl: database.url,
      env: { PORT: String(port), SHUTDOWN_DELAY_MS: process.env['X_DELAY'] ?? SHUTDOWN_DELAY_MS[name], TRUSTED_PROXIES: '127.0.0.1' },
    });
  const replicas = await Promise.all(ports.map(start));
  await using proxy = await startDeployedProxy(name, [`127.0.0.1:${ports[0]}`, `127.0.0.1:${ports[1]}`]);
  const { ca } = proxy;
  const onNew = sendSteadily(proxy.url, new Agent({ ca, keepAlive: false }));
  const onKept = sendSteadily(proxy.url, new Agent({ ca, keepAlive: true }));
  await new Promise((r) => setTimeout(r, 1000));

  const t0 = performance.now();
  for (const [index, port] of ports.entries()) {
    replicas[index]?.kill('SIGTERM');
    expect(await replicas[index]?.exited).toEqual({ code: 0, signal: null });
    console.log(name, index, 'exited', new Date().toISOString(), Math.round(performance.now() - t0));
    replicas[index] = await start(port);
    console.log(name, index, 'back', new Date().toISOString(), Math.round(performance.now() - t0));
  }
  await new Promise((r) => setTimeout(r, 1000));
  const [a, b] = [await onNew(), await onKept()];
  const stats = (l: Answer[]) => { const m = l.map(({ ms }) => ms).toSorted((x, y) => x - y); return { n: m.length, p50: m[m.length >> 1], p99: m[Math.floor(m.length * 0.99)], max: m.at(-1), bad: JSON.stringify(refused(l)).slice(0, 1500), counts: JSON.stringify(Object.groupBy(l, (x) => String(x.status))).length && Object.fromEntries(Object.entries(Object.groupBy(l, (x) => String(x.status))).map(([k, v]) => [k, v?.length])) }; };
  console.log(name, 'new', stats(a), 'kept', stats(b));
  for (const r of replicas) await r?.[Symbol.asyncDispose]();
  console.log(await eventIds(database).then((x) => x.length));
  if (process.env.X_LOG) console.log(proxy.log().split("\n").filter((l) => !l.includes(" 202 ")).join("\n").slice(0, 12000), new Date().toISOString());
});
