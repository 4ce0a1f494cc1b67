// What the client of the operators' API does with each kind of answer, and with none: pages, waits, repeats, streams.

import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import {
  ApiAnswerError,
  createOperatorsClient,
  InvalidAnswerError,
  NoAnswerError,
} from '../../../src/operators/client/client.ts';
import { DECIDED, ENTRY } from '../../support/operators.ts';
import { hang, type Receiver, type Respond, startReceiver } from '../../support/receiver.ts';
import { failure, reply } from '../../support/scripted-service.ts';

const TOKEN = 'thk_test_pLaNtEd-0123456789';
const JOB = {
  source: 'team-a',
  job_id: 'job_1',
  state: 'completed',
  highest_progress: null,
  first_seen_at: '2026-01-15T10:30:00Z',
  last_seen_at: '2026-01-15T10:30:00Z',
  completed_at: null,
  failed_at: null,
  terminal_at: null,
  duration_ms: null,
};

const refusal = (code: string) => ({ error: code, message: `it is ${code}` });

function clientOf(service: Pick<Receiver, 'port'>, options: { timeoutMs?: number; silenceMs?: number } = {}) {
  const waits: number[] = [];
  const client = createOperatorsClient({
    url: `http://127.0.0.1:${service.port}`,
    token: TOKEN,
    sleep: (ms) => {
      waits.push(ms);
      return Promise.resolve();
    },
    ...options,
  });
  return { client, waits };
}

async function allOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const pagesOf =
  (...cursors: readonly (string | null)[]): Respond =>
  (response, _received, index) =>
    reply(response, 200, { items: [ENTRY, ENTRY], next_cursor: cursors[index] ?? null });

test('a list is read page by page to its end, with its filters on each', async () => {
  await using service = await startReceiver(pagesOf('second', 'third', null));

  const found = await allOf(clientOf(service).client.each('outbox', { state: 'parked', source: undefined }));

  expect(found).toHaveLength(6);
  expect(service.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /api/v1/outbox?state=parked&limit=200',
    'GET /api/v1/outbox?state=parked&limit=200&cursor=second',
    'GET /api/v1/outbox?state=parked&limit=200&cursor=third',
  ]);
  expect(service.received[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
});

test('no more is asked for than was wanted', async () => {
  await using service = await startReceiver(pagesOf('second', 'third', null));
  const found = await allOf(clientOf(service).client.each('outbox', {}, { max: 3 }));
  expect(found).toHaveLength(3);
  expect(service.received.map(({ path }) => path)).toEqual([
    '/api/v1/outbox?limit=3',
    '/api/v1/outbox?limit=1&cursor=second',
  ]);
});

test('a list that leads back to itself is an error and no endless loop', async () => {
  await using service = await startReceiver(pagesOf('same', 'same', 'same', 'same'));
  const error = await failure(allOf(clientOf(service).client.each('outbox')));
  expect(error).toBeInstanceOf(InvalidAnswerError);
});

test('ids are encoded, whatever is in them', async () => {
  await using service = await startReceiver((response) => reply(response, 404, refusal('not_found')));
  await failure(clientOf(service).client.event('default:a/b?c#d:failed'));
  expect(service.received[0]?.path).toBe('/api/v1/events/default%3Aa%2Fb%3Fc%23d%3Afailed');
});

/** Parks an entry. @returns what became of it */
async function park(client: ReturnType<typeof clientOf>['client'], key?: string) {
  const keys = key === undefined ? [] : [() => key];
  for await (const { items } of client.order('outbox/park', { ids: ['7'] }, ...keys)) return items?.[0];
  return undefined;
}

test('a story is asked for in the path, but for ids that an address loses there', async () => {
  await using service = await startReceiver((response) =>
    reply(response, 200, { job: JOB, items: [], next_cursor: null }),
  );
  for (const id of ['job_1', '.', '..', '...']) await allOf(clientOf(service).client.story('team-a', id));
  expect(service.received.map(({ path }) => path)).toEqual([
    '/api/v1/jobs/team-a/job_1?limit=500',
    '/api/v1/story?source=team-a&job_id=.&limit=500',
    '/api/v1/story?source=team-a&job_id=..&limit=500',
    '/api/v1/jobs/team-a/...?limit=500',
  ]);
});

test('an action whose connection was lost is repeated under the same key', async () => {
  await using service = await startReceiver((response, _received, index) => {
    if (index < 2) response.destroy();
    else reply(response, 200, DECIDED);
  });
  const { client } = clientOf(service);

  expect(await park(client, 'key-of-this-run')).toMatchObject({ id: '7' });

  expect(service.received.map(({ headers }) => headers['idempotency-key'])).toEqual([
    'key-of-this-run',
    'key-of-this-run',
    'key-of-this-run',
  ]);
});

test('an action without a key has one of its own, which each try repeats', async () => {
  await using service = await startReceiver((response, _received, index) =>
    index === 0 ? reply(response, 503, refusal('unavailable')) : reply(response, 200, DECIDED),
  );
  const { client } = clientOf(service);

  await park(client);
  await park(client);

  const [first, repeated, second] = service.received.map(({ headers }) => headers['idempotency-key']);
  expect(first).toMatch(/^[\da-f-]{36}$/);
  expect(repeated).toBe(first);
  expect(second).not.toBe(first);
});

test('an action that is still under way by its first try is asked for again', async () => {
  await using service = await startReceiver((response, _received, index) =>
    index === 0 ? reply(response, 409, refusal('in_progress')) : reply(response, 200, DECIDED),
  );
  expect(await park(clientOf(service).client, 'k')).toMatchObject({ id: '7' });
});

test.for([
  [429, 'rate_limited', '20', [20_000]],
  [503, 'unavailable', '1', [1_000]],
  [503, 'unavailable', undefined, [250]],
] as const)('%i %s with Retry-After %s is waited out', async ([status, code, after, waited]) => {
  await using service = await startReceiver((response, _received, index) =>
    index === 0
      ? reply(response, status, refusal(code), after === undefined ? {} : { 'Retry-After': after })
      : pagesOf(null)(response, _received, index),
  );
  const { client, waits } = clientOf(service);
  expect(await allOf(client.each('outbox'))).toHaveLength(2);
  expect(waits).toEqual(waited);
});

test.for([
  [429, 'rate_limited', '3600'],
  [503, 'query_timeout', '1'],
  [500, 'internal', undefined],
  [409, 'wrong_state', undefined],
  [403, 'forbidden', undefined],
] as const)('%i %s with Retry-After %s is an error at once', async ([status, code, after]) => {
  await using service = await startReceiver((response) =>
    reply(response, status, refusal(code), after === undefined ? {} : { 'Retry-After': after }),
  );
  const { client, waits } = clientOf(service);
  const error = await failure(park(client, 'k'));
  expect(error).toBeInstanceOf(ApiAnswerError);
  expect(error).toMatchObject({ code, httpStatus: status, message: `it is ${code}` });
  expect(waits).toEqual([]);
});

test('a service that stays away is given up after some tries, and no error shows the token', async () => {
  const service = await startReceiver(hang);
  await service[Symbol.asyncDispose]();
  const { client, waits } = clientOf(service);

  const error = await failure(client.sources());

  expect(error).toBeInstanceOf(NoAnswerError);
  expect(error).toMatchObject({ code: 'unreachable' });
  expect(waits).toEqual([250, 500, 1_000, 2_000]);
  expect(inspect(error, { depth: 9 })).not.toContain('pLaNtEd');
});

test('a service that says nothing is given up after its time, and tried once more', async () => {
  await using service = await startReceiver(hang);
  const error = await failure(clientOf(service, { timeoutMs: 100 }).client.sources());
  expect(error).toMatchObject({ code: 'timed_out' });
  expect(service.received).toHaveLength(2);
});

test('a redirect is no answer: the token goes nowhere else', async () => {
  await using elsewhere = await startReceiver();
  await using service = await startReceiver((response) =>
    reply(response, 302, {}, { Location: `http://127.0.0.1:${elsewhere.port}/` }),
  );
  expect(await failure(clientOf(service).client.sources())).toMatchObject({ code: 'http_302' });
  expect(elsewhere.received).toEqual([]);
});

test("a proxy's page is no answer", async () => {
  await using service = await startReceiver((response) => void response.writeHead(200).end('<h1>Hello</h1>'));
  expect(await failure(clientOf(service).client.sources())).toBeInstanceOf(InvalidAnswerError);
});

test('an export that is cut is told from one that is whole', async () => {
  await using service = await startReceiver((response, _received, index) => {
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
    response.write('{"a":1}\n', () => (index === 0 ? response.destroy() : response.end('{"a":2}\n')));
  });
  const { client } = clientOf(service);

  expect(await failure(allOf(client.exportList({ list: 'jobs' })))).toMatchObject({ code: 'cut' });
  const whole = Buffer.concat(await allOf(client.exportList({ list: 'jobs' })));
  expect(whole.toString()).toBe('{"a":1}\n{"a":2}\n');
});

test('a stream that falls silent is cut; one that its reader leaves waiting is not', async () => {
  await using service = await startReceiver((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: one\n\n');
  });
  const events = clientOf(service, { silenceMs: 100 }).client.live({});
  expect(await events.next()).toMatchObject({ value: { data: 'one' } });
  expect(await failure(events.next())).toMatchObject({ code: 'cut' });

  await using talking = await startReceiver((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: one\n\n');
    setTimeout(() => response.end('data: two\n\n'), 50);
  });
  const read = clientOf(talking, { silenceMs: 100 }).client.live({});
  await read.next();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await read.next()).toMatchObject({ value: { data: 'two' } });
});

test('server-sent events are read wherever the stream is split', async () => {
  const text = ': hello\n\nevent: delivery\ndata: {"job_id":"jób"}\n\r\nid: 4\ndata: one\ndata: two\n\n';
  await using service = await startReceiver((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const bytes = [...Buffer.from(text)];
    const writeNext = () => {
      const byte = bytes.shift();
      if (byte === undefined) response.end();
      else response.write(Buffer.of(byte), () => setImmediate(writeNext));
    };
    writeNext();
  });
  const events = await allOf(clientOf(service).client.live({}));
  expect(events).toEqual([
    { event: 'delivery', data: '{"job_id":"jób"}' },
    { event: 'message', data: 'one\ntwo' },
  ]);
});

test.each([
  ['a line', `data: ${'x'.repeat(1024 * 1024)}`],
  ['an event', 'data: 0123456789\n'.repeat(128 * 1024)],
])('%s that does not end is given up', async (_what, text) => {
  await using service = await startReceiver((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(text);
  });
  expect(await failure(allOf(clientOf(service).client.live({})))).toBeInstanceOf(InvalidAnswerError);
});

test.for([
  ['ftp://127.0.0.1', TOKEN],
  ['http://someone:a-password@127.0.0.1', TOKEN],
  ['not a url', TOKEN],
  ['http://127.0.0.1', ''],
  ['http://127.0.0.1', 'pLaNtEd\nX-Other: 1'],
])('%j with the token %j cannot be used, and neither is quoted', ([url = '', token = '']) => {
  const error = (() => {
    try {
      createOperatorsClient({ url, token });
    } catch (thrown) {
      return thrown;
    }
    return expect.fail('it did not fail');
  })();
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).not.toMatch(/pLaNtEd|a-password/);
});
