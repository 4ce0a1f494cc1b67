// Both faces behind a proxy of ours at 127.0.0.2. Whoever comes from 127.0.0.1 is none.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cliOf } from '../../support/cli.ts';
import { askFrom, type From } from '../../support/requests.ts';
import { type DeliveryRow } from '../../support/ledger.ts';
import { operators } from '../../support/operators.ts';
import { completed, newJobId, sign } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';

const PROXY = '127.0.0.2';
const STRANGER = '127.0.0.1';
const REQUESTS_PER_MINUTE = 1; // of a token; of an address, ten times as many

let relay: TestService;
beforeAll(async () => {
  relay = await startTestService({ env: { TRUSTED_PROXIES: `${PROXY}, 10.0.0.0/8` } });
});
afterAll(() => relay[Symbol.asyncDispose]());

const forwarded = (...lines: string[]) => ({ 'X-Forwarded-For': lines });

/** Sends a completed job; its row. */
async function deliverFrom(from: string, headers: From['headers']): Promise<DeliveryRow> {
  const job = newJobId();
  const body = JSON.stringify(completed(job));
  const { status } = await askFrom(relay.webhooks, {
    from,
    headers: { 'X-Service-Signature': sign(body), ...headers },
    method: 'POST',
    body,
  });
  expect(status).toBe(202);
  const [row] = await relay.database.query<DeliveryRow>('select * from deliveries where job_id = $1', [job]);
  if (row === undefined) throw new Error('it was acknowledged');
  return row;
}

const lineOf = ({ id }: DeliveryRow) => relay.log.find(({ delivery }) => delivery === id);

test('the audit has the sender from the proxy’s header, and the proxy', async () => {
  const row = await deliverFrom(PROXY, forwarded('198.51.100.1', '203.0.113.7, 10.0.0.1'));

  expect(row).toMatchObject({ remote_address: '203.0.113.7', peer_address: PROXY });
  expect(lineOf(row)).toMatchObject({ remote: '203.0.113.7', peer: PROXY });
  const viewer = await operators(relay, { role: 'viewer' });
  const shown = { remote_address: '203.0.113.7', peer_address: PROXY };
  expect((await viewer.get(`/deliveries/${row.id}`)).body).toMatchObject(shown);
  const { body: found } = await viewer.get<{ items: object[] }>('/deliveries?remote_address=203.0.113.7');
  expect(found.items).toMatchObject([{ id: row.id, ...shown }]);
  expect((await viewer.get<{ items: object[] }>(`/deliveries?remote_address=${PROXY}`)).body.items).toEqual(
    [],
  );
});

test('deliveries show names both', async () => {
  const { id } = await deliverFrom(PROXY, forwarded('203.0.113.8'));
  const cli = await cliOf(relay, { role: 'viewer' });

  const { screen } = await cli.onTerminal(['deliveries', 'show', id]);

  expect(screen).toMatch(/^from +203\.0\.113\.8$/m);
  expect(screen).toMatch(/^through +127\.0\.0\.2$/m);
});

test('without a trusted proxy the audit has the peer, whatever the headers say', async () => {
  const row = await deliverFrom(STRANGER, forwarded('203.0.113.7', PROXY));

  expect(row).toMatchObject({ remote_address: STRANGER, peer_address: null });
  expect(lineOf(row)).toMatchObject({ remote: STRANGER });
  expect(lineOf(row)).not.toHaveProperty('peer');
});

test('of a proxy that tells nobody, the proxy is the sender', async () => {
  expect(await deliverFrom(PROXY, {})).toMatchObject({ remote_address: PROXY, peer_address: null });
  expect(await deliverFrom(PROXY, forwarded('unknown'))).toMatchObject({
    remote_address: PROXY,
    peer_address: null,
  });
});

test('padding hides no hop: the end of a long header is kept', async () => {
  const padding = Array(100).fill('198.51.100.1').join(', ');
  const row = await deliverFrom(PROXY, forwarded(padding, '203.0.113.7'));

  expect(row.remote_address).toBe('203.0.113.7');
  const kept = (JSON.parse(row.headers) as Record<string, string>)['x-forwarded-for'];
  expect(kept).toHaveLength(256);
  expect(kept).toMatch(/198\.51\.100\.1, 203\.0\.113\.7$/);
});

test('a range that is everybody is warned of', async () => {
  await using open = await startTestService({ env: { TRUSTED_PROXIES: '::/0' } });

  expect(open.log.filter(({ msg }) => String(msg).includes('TRUSTED_PROXIES'))).toMatchObject([
    { level: 40 },
  ]);
  expect(relay.log.filter(({ msg }) => String(msg).includes('TRUSTED_PROXIES'))).toEqual([]);
});

describe('on the operators’ side', () => {
  let limited: TestService;
  beforeAll(async () => {
    limited = await startTestService({
      env: { TRUSTED_PROXIES: PROXY, API_REQUESTS_PER_MINUTE: String(REQUESTS_PER_MINUTE) },
    });
  });
  afterAll(() => limited[Symbol.asyncDispose]());

  /** Guesses until the limit; how many were let through. */
  async function guessFrom(from: string, headers: (number: number) => From['headers']): Promise<number> {
    for (let number = 0; ; number++) {
      const { status } = await askFrom(`${limited.operators}/api/v1/jobs`, {
        from,
        headers: headers(number),
      });
      if (status === 429 || number > 10 * REQUESTS_PER_MINUTE) return number;
    }
  }

  test('a guess is held against the sender that a proxy tells, and not against the proxy', async () => {
    expect(await guessFrom(PROXY, (number) => forwarded(`10.9.9.${number}, 203.0.113.7`))).toBe(10);
    expect(await guessFrom(PROXY, () => forwarded('203.0.113.8'))).toBe(10);
    expect(await guessFrom(PROXY, () => ({}))).toBe(10);
    const remotes = limited.log.filter(({ msg }) => msg === 'operators request').map(({ remote }) => remote);
    expect(new Set(remotes)).toEqual(new Set(['203.0.113.7', '203.0.113.8', PROXY]));
  });

  test('headers from other peers change no address', async () => {
    expect(await guessFrom(STRANGER, (number) => forwarded(`203.0.113.${number}`))).toBe(10);
  });

  test('the operator log has the sender', async () => {
    const admin = await operators(relay, { role: 'admin' });
    const { status } = await askFrom(`${relay.operators}/api/v1/tokens`, {
      from: PROXY,
      headers: {
        ...forwarded('203.0.113.9'),
        Authorization: `Bearer ${admin.value}`,
        'Content-Type': 'application/json',
      },
      method: 'POST',
      body: JSON.stringify({ name: 'through a proxy', role: 'viewer' }),
    });
    expect(status).toBe(201);

    const { body } = await admin.get<{ items: object[] }>('/operator-log?action=token.create');
    expect(body.items[0]).toMatchObject({ remote_address: '203.0.113.9' });
  });

  test('a page’s origin is compared with the scheme and host from a trusted proxy only', async () => {
    const { value } = await operators(relay, { role: 'viewer' });
    const ask = async (from: string, origin: string) => {
      const { status } = await askFrom(`${relay.operators}/api/v1/jobs`, {
        from,
        headers: {
          Authorization: `Bearer ${value}`,
          Origin: origin,
          Host: 'internal:8081',
          'X-Forwarded-Proto': 'https',
          'X-Forwarded-Host': 'relay.example',
        },
      });
      return status;
    };

    expect(await ask(PROXY, 'https://relay.example')).toBe(200);
    expect(await ask(PROXY, 'http://relay.example')).toBe(403);
    expect(await ask(PROXY, 'https://internal:8081')).toBe(403);
    expect(await ask(STRANGER, 'https://internal:8081')).toBe(200);
    expect(await ask(STRANGER, 'https://relay.example')).toBe(403);
  });
});
