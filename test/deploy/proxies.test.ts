// What passes each proxy of deploy/, and what does not: bytes, signatures, addresses, refusals, and nothing of the operators' port.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/tools/doctor/finding.ts';
import {
  PROXIES,
  type DeployedProxy,
  type ProxyName,
  startDeployedProxy,
} from '../support/deployed-proxies.ts';
import type { DeliveryRow } from '../support/ledger.ts';
import { operators } from '../support/operators.ts';
import { findFreePort } from '../../scripts/services/ports.ts';
import { parseLines } from '../support/cli.ts';
import { runProcess, startReplica } from '../support/replica.ts';
import { askFrom, type From } from '../support/requests.ts';
import { newJobId, SECRET, sign } from '../support/sender.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { cases, IS_SHORT_RUN } from '../only-in-all.ts';

const PROXY = '127.0.0.1';
const SENDER = '127.0.0.9';
const LIMIT_BYTES = 262_144;
const CHUNKED = { 'Transfer-Encoding': 'chunked' };

let relay: TestService;
beforeAll(async () => {
  relay = await startTestService({ env: { TRUSTED_PROXIES: PROXY, REFUSED_ROWS_PER_MINUTE: '1000' } });
});
afterAll(() => relay[Symbol.asyncDispose]());

/** A body of exactly so many bytes, with white space, escapes and characters that whoever writes JSON anew would change. */
function oddBody(bytes: number, jobId = newJobId()): Buffer {
  const odd = `{ "job_id":"${jobId}",\r\n\t"status" : "completed","input_format":"\\u006dp4 äöü – 𝄞","x":1.50e0,`;
  const end = '"}\n';
  const start = `${odd}"padding":"`;
  return Buffer.from(start + 'x'.repeat(bytes - Buffer.byteLength(start + end)) + end);
}

/** The row of the audit for a delivery of this job. */
async function rowOf(job: string): Promise<DeliveryRow & { body: Buffer }> {
  const [row] = await relay.database.query<DeliveryRow & { body: Buffer }>(
    'select * from deliveries where job_id = $1',
    [job],
  );
  if (row === undefined) throw new Error(`there is no delivery of ${job}`);
  return row;
}

async function countTooLarge(): Promise<number> {
  const rows = await relay.database.query(
    'select from deliveries where http_status = 413 and remote_address = $1',
    [SENDER],
  );
  return rows.length;
}

/** What a sender gets while no replica is ready. Caddy asks none then. */
const UNREADY = { error: 'unavailable' };
const ANSWERS = { nginx: UNREADY, haproxy: UNREADY, caddy: {} } as const;

const TOO_LARGE = { status: 413, body: { error: 'payload_too_large' } };

for (const name of cases<ProxyName>(['nginx'], ['haproxy', 'caddy'])) {
  /** HAProxy ends the connection once it has passed the answer on, also while the sender still sends and does not read. */
  function orCut(error: unknown): typeof TOO_LARGE {
    if (name !== 'haproxy') throw error;
    return TOO_LARGE;
  }

  describe.skipIf(!PROXIES[name].program)(`behind ${name}`, () => {
    let proxy: DeployedProxy;
    beforeAll(async () => {
      const replica = `127.0.0.1:${relay.service.port}`;
      proxy = await startDeployedProxy(name, [replica, replica]);
    });
    afterAll(() => proxy[Symbol.asyncDispose]());

    const ask = (path: string, options: From = {}) =>
      askFrom(`${proxy.url}${path}`, { ca: proxy.ca, from: SENDER, ...options });

    const send = (body: Buffer, headers: From['headers'] = {}, path = '/webhooks') =>
      ask(path, { method: 'POST', body, headers: { 'X-Service-Signature': sign(body), ...headers } });

    test.for([
      [600, {}],
      [600, CHUNKED],
      [LIMIT_BYTES, {}],
      [LIMIT_BYTES, CHUNKED],
    ] as const)('a body of %i bytes arrives as it was sent, with %o', async ([bytes, headers]) => {
      const job = newJobId();
      const body = oddBody(bytes, job);

      expect(await send(body, headers)).toMatchObject({ status: 202 });
      expect((await rowOf(job)).body.equals(body)).toBe(true);
    });

    test('a wrong signature is refused by the service, not by the proxy', async () => {
      const refused = await send(oddBody(600), { 'X-Service-Signature': sign('other') });

      expect(refused).toMatchObject({ status: 401, body: { error: 'unauthorized' } });
    });

    test('the audit has the sender’s address, also when it claims another one', async () => {
      const [honest, forger] = [newJobId(), newJobId()];
      await send(oddBody(600, honest));
      await send(oddBody(600, forger), { 'X-Forwarded-For': '203.0.113.7', Forwarded: 'for=203.0.113.7' });

      for (const job of [honest, forger])
        expect(await rowOf(job)).toMatchObject({ remote_address: SENDER, peer_address: PROXY });
    });

    test.for([
      [LIMIT_BYTES + 1, {}],
      [900_000, {}],
      [900_000, CHUNKED],
    ] as const)(
      'a body of %i bytes is refused by the service, which keeps a record, with %o',
      async ([bytes, headers]) => {
        const before = await countTooLarge();

        expect(await send(oddBody(bytes), headers).catch(orCut)).toMatchObject(TOO_LARGE);
        await expect.poll(countTooLarge).toBe(before + 1);
      },
    );

    test('a named source has its own path', async () => {
      expect(await send(oddBody(600), {}, '/webhooks/nobody')).toMatchObject({
        status: 401,
        body: { error: 'unauthorized' },
      });
    });

    test('no other path leads to the service, and none to the operators’ port', async () => {
      const { value } = await operators(relay, { role: 'admin' });
      const headers = { Authorization: `Bearer ${value}` };
      for (const path of ['/api/v1/jobs', '/api/v1/docs', '/console', '/metrics', '/livez', '/readyz', '/']) {
        const { status, body } = await ask(path, { headers });
        expect({ path, status, body }).toEqual({ path, status: 404, body: {} }); // ours would be JSON
      }
    });

    test('neither a body nor a signature is in its logs', async () => {
      const job = newJobId();
      const body = oddBody(600, job);
      await send(body);
      await send(body, { 'X-Service-Signature': `sha256=${'ab'.repeat(32)}` });

      await expect.poll(proxy.log).toContain('/webhooks');
      expect(proxy.log()).not.toContain(job);
      expect(proxy.log()).not.toMatch(/sha256=|x-service-signature|[0-9a-f]{64}/i);
    });

    test.skipIf(IS_SHORT_RUN)('while no replica is ready, a sender gets 503', async () => {
      await using replica = await startReplica({
        databaseUrl: `postgres://nobody@127.0.0.1:${await findFreePort()}/none`,
        waitUntilReady: false,
      });
      const { host } = new URL(replica.intake);
      await using front = await startDeployedProxy(name, [host, host]);
      const body = oddBody(600);
      const deliver = () =>
        askFrom(`${front.url}/webhooks`, {
          ca: front.ca,
          method: 'POST',
          body,
          headers: { 'X-Service-Signature': sign(body) },
        });

      await expect.poll(deliver).toMatchObject({ status: 503, body: ANSWERS[name] });
    });

    test.skipIf(IS_SHORT_RUN)('tallyhook doctor finds nothing to mend', async () => {
      const { code, stdout } = await runProcess(['doctor', `${proxy.url}/webhooks`], {
        env: { NODE_EXTRA_CA_CERTS: proxy.caFile, SIGNING_SECRETS: SECRET },
      });

      expect(parseLines<Finding>(stdout).filter(({ result }) => result !== 'ok')).toEqual([]);
      expect(code).toBe(0);
    });
  });
}
