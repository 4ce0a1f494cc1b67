// Connections on real sockets, with a resolver of the test's own. Nothing leaves the machine: a forbidden address is
// refused before any connection.

import { type AddressInfo, createServer, isIP, type LookupFunction } from 'node:net';
import { request } from 'undici';
import { afterAll, describe, expect, test } from 'vitest';
import { type Addresses, createAddresses } from '../../../src/sandbox/addresses/addresses.ts';
import { startOrigin } from '../../support/origin.ts';
import { waitFor } from '../../support/waits.ts';

const PUBLIC = '8.8.8.8';

/** Returns these answers one after the other, and then always the last. */
function resolver(...answers: readonly (readonly string[])[]): LookupFunction & { asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupFunction = (hostname, options, callback) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(hostname);
    const found = answer.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    // Like the system's resolver: asynchronously, and in the requested form.
    process.nextTick(() => {
      if (options.all) callback(null, found);
      else callback(null, first?.address ?? '', first?.family);
    });
  };
  return Object.assign(lookup, { asked });
}

async function withAddresses<T>(
  options: Parameters<typeof createAddresses>[0],
  use: (addresses: Addresses) => Promise<T>,
): Promise<T> {
  const addresses = createAddresses(options);
  try {
    return await use(addresses);
  } finally {
    await addresses.close();
  }
}

const get = (url: string, { dispatcher }: Addresses) => request(url, { dispatcher, headersTimeout: 5_000 });

const REFUSED = { name: 'AddressError', code: 'address_refused' };

describe('with what is local forbidden', async () => {
  let connections = 0;
  const canary = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve));
  const { port } = canary.address() as AddressInfo;
  afterAll(() => new Promise((resolve) => canary.close(resolve)));

  test.each([
    ['loopback', ['127.0.0.1']],
    ['another loopback', ['127.8.8.8']],
    ['IPv6 loopback', ['::1']],
    ['a mapped loopback', ['::ffff:127.0.0.1']],
    ['the unspecified address', ['0.0.0.0']],
    ['the unspecified IPv6 address', ['::']],
    ['a private address', ['10.0.0.1']],
    ['a link-local address', ['169.254.169.254']],
    ['a scoped link-local IPv6 address', ['fe80::1%lo']],
    ['a unique local IPv6 address', ['fd00::1']],
    ['NAT64 of loopback', ['64:ff9b::7f00:1']],
    ['6to4 of loopback', ['2002:7f00:1::']],
    ['a public address and loopback', [PUBLIC, '127.0.0.1']],
    ['loopback and a public address', ['127.0.0.1', PUBLIC]],
    ['no address at all', []],
    ['rubbish', ['not an address']],
  ] as const)('a name that resolves to %s is refused before anybody connects', async (_what, answer) => {
    const lookup = resolver(answer);

    await withAddresses({ allowLocal: false, lookup }, async (addresses) => {
      expect(addresses.fault(`https://files.example:${port}/`)).toBeUndefined();
      await expect(get(`https://files.example:${port}/`, addresses)).rejects.toMatchObject(REFUSED);
    });
    expect(lookup.asked).toEqual(['files.example']);
    expect(connections).toBe(0);
  });

  test.each(['127.0.0.1', '[::1]', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '10.0.0.1', '0.0.0.0'])(
    'an address in the URL is refused even where nobody judged the URL: %s',
    async (host) => {
      await withAddresses({ allowLocal: false }, async (addresses) => {
        await expect(get(`https://${host}:${port}/`, addresses)).rejects.toMatchObject(REFUSED);
      });
      expect(connections).toBe(0);
    },
  );

  test('localhost is refused by what the system resolves it to', async () => {
    await withAddresses({ allowLocal: false }, async (addresses) => {
      await expect(get(`https://localhost:${port}/`, addresses)).rejects.toMatchObject(REFUSED);
    });
    expect(connections).toBe(0);
  });

  test('plain http is refused, whatever the host', async () => {
    const lookup = resolver([PUBLIC]);

    await withAddresses({ allowLocal: false, lookup }, async (addresses) => {
      await expect(get('http://files.example/', addresses)).rejects.toMatchObject(REFUSED);
    });
    expect(lookup.asked).toEqual([]);
  });

  test('the refusal does not say what the name resolves to', async () => {
    await withAddresses({ allowLocal: false, lookup: resolver(['10.20.30.40']) }, async (addresses) => {
      await expect(get('https://files.example/', addresses)).rejects.toMatchObject({
        message: 'the host is private, local or reserved, and may not be reached',
      });
    });
  });
});

test('an origin of this machine that the sandbox itself named is reached, and no other port of it', async () => {
  await using origin = await startOrigin((_request, response) => response.end('here'));
  await using neighbour = await startOrigin((_request, response) => response.end('not here'));
  const localOrigins = [`http://127.0.0.1:${origin.port}`];

  await withAddresses({ allowLocal: false, localOrigins }, async (addresses) => {
    const answer = await get(`http://127.0.0.1:${origin.port}/clip`, addresses);
    expect(await answer.body.text()).toBe('here');
    for (const other of [`http://127.0.0.1:${neighbour.port}/`, `http://localhost:${origin.port}/`]) {
      await expect(get(other, addresses)).rejects.toMatchObject(REFUSED);
    }
  });
  expect(origin.asked).toEqual(['GET /clip']);
  expect(neighbour.asked).toEqual([]);
});

describe('with what is local allowed', () => {
  test('loopback is reached, by address and by name', async () => {
    await using origin = await startOrigin((_request, response) => response.end('here'));

    await withAddresses({ allowLocal: true }, async (addresses) => {
      for (const host of ['127.0.0.1', 'localhost']) {
        const answer = await get(`http://${host}:${origin.port}/${host}`, addresses);
        expect(await answer.body.text()).toBe('here');
      }
    });
    expect(origin.asked).toEqual(['GET /127.0.0.1', 'GET /localhost']);
  });

  test.each([
    ['a private address', ['192.168.0.1']],
    ['a mapped loopback', ['::ffff:127.0.0.1']],
    ['loopback and a private address', ['127.0.0.1', '10.0.0.1']],
  ] as const)('a name that resolves to %s is refused', async (_what, answer) => {
    await using origin = await startOrigin((_request, response) => response.end());

    await withAddresses({ allowLocal: true, lookup: resolver(answer) }, async (addresses) => {
      await expect(get(`http://files.example:${origin.port}/`, addresses)).rejects.toMatchObject(REFUSED);
    });
    expect(origin.connections()).toBe(0);
  });

  test('a name that resolves to a forbidden address later is refused at its next connection', async () => {
    await using origin = await startOrigin((_request, response) => {
      response.setHeader('Connection', 'close').end('once');
    });
    const lookup = resolver(['127.0.0.1'], ['10.0.0.1']);

    await withAddresses({ allowLocal: true, lookup }, async (addresses) => {
      const first = await get(`http://files.example:${origin.port}/`, addresses);
      expect(await first.body.text()).toBe('once');
      await expect(get(`http://files.example:${origin.port}/`, addresses)).rejects.toMatchObject(REFUSED);
    });
    expect(lookup.asked).toHaveLength(2);
    expect(origin.asked).toHaveLength(1);
  });

  test('a redirect is an answer and is not followed', async () => {
    await using origin = await startOrigin((_request, response) => {
      response.writeHead(302, { Location: '/elsewhere' }).end();
    });

    await withAddresses({ allowLocal: true }, async (addresses) => {
      const answer = await get(`${origin.url}/`, addresses);
      expect(answer.statusCode).toBe(302);
      await answer.body.dump();
    });
    expect(origin.asked).toEqual(['GET /']);
  });
});

test('closing cuts what is under way, and can be done twice', async () => {
  await using origin = await startOrigin(() => {});
  const addresses = createAddresses({ allowLocal: true });
  const failed = get(origin.url, addresses).catch((error: Error) => error.name);
  await waitFor(() => expect(origin.asked).toHaveLength(1));

  await addresses.close();
  await addresses.close();

  expect(await failed).toBe('ClientDestroyedError');
});
