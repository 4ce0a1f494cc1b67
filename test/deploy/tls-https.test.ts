// The operators' client against TLS servers with a CA of the test's own: each line of docs/tls.md on it. What Node itself reads at the
// start of a process is tried in tls.test.ts.

import { Agent, fetch as fetchOfUndici } from 'undici';
import { expect, test } from 'vitest';
import { createOperatorsClient } from '../../src/operators/client/public.ts';
import { type Certificate, createAuthority, selfSignedCertificate } from '../support/certificate.ts';
import { answer, startReceiver } from '../support/receiver.ts';
import { saidBy, sentencesFor } from '../support/tls-faults.ts';

const TOKEN = 'thk_test_planted-token';

const authority = createAuthority();

type Trust = { readonly ca?: string; readonly cert?: string; readonly key?: string };

function clientOf(url: string, connect: Trust) {
  const dispatcher = new Agent({ connect });
  const fetch = ((to: string, init: object) => fetchOfUndici(to, { ...init, dispatcher })) as unknown;
  return createOperatorsClient({
    url,
    token: TOKEN,
    fetch: fetch as typeof globalThis.fetch,
    sleep: () => Promise.resolve(),
  });
}

/** What it says of a server that shows this certificate, and that nothing reached it. */
async function faultOf(
  certificate: Certificate | undefined,
  {
    trust = { ca: authority.cert },
    scheme = 'https',
    code = 'tls_failed',
  }: { trust?: Trust; scheme?: 'http' | 'https'; code?: string } = {},
): Promise<string> {
  await using server = await startReceiver(answer(200), certificate === undefined ? {} : { certificate });
  const url = `${scheme}://127.0.0.1:${server.port}`;
  const error = await clientOf(url, trust)
    .replicas()
    .catch((reason: unknown) => reason as Error);
  expect(error).toMatchObject({ name: 'NoAnswerError', code });
  expect(server.received).toEqual([]);
  expect(JSON.stringify([error, String((error as Error).cause)])).not.toContain(TOKEN);
  return (error as Error).message;
}

test('each fault has its sentence', async () => {
  const said = await saidBy({
    "the server's certificate has expired": () => faultOf(authority.issue({ days: -1 })),
    'it is for another host': () => faultOf(authority.issue({ hosts: ['elsewhere.example'] })),
    'it is signed by itself': () => faultOf(selfSignedCertificate()),
    'it is of another CA, or no CA is named': () => faultOf(authority.issue(), { trust: {} }),
    'the proxy wants a certificate of its clients': () => faultOf(mutual(), { code: 'unreachable' }),
    'only the client uses TLS': () => faultOf(undefined),
    'only the server uses TLS': () => faultOf(authority.issue(), { scheme: 'http', code: 'unreachable' }),
  });
  expect(said).toEqual(sentencesFor('HTTP'));
});

/** Wants a certificate of its clients. */
function mutual(): Certificate {
  const options = { ...authority.issue(), ca: authority.cert, requestCert: true, rejectUnauthorized: true };
  return options;
}

test('a fetch of its own brings a certificate', async () => {
  await using server = await startReceiver((response) => void response.end(JSON.stringify({ items: [] })), {
    certificate: mutual(),
  });
  const client = clientOf(`https://127.0.0.1:${server.port}`, {
    ca: authority.cert,
    ...authority.issue({ name: 'an operator', hosts: [] }),
  });
  expect(await client.replicas()).toEqual([]);
});
