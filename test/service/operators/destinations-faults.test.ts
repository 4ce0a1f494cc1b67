// A management API that is not there, is slow, or is another server: the page of destinations and the form of a replay work all the
// same, and say so.

import { expect, test } from 'vitest';
import type { DestinationList } from '../../../src/operators/destinations/contract.ts';
import { createAuthority } from '../../support/certificate.ts';
import { cliOf } from '../../support/cli.ts';
import { visitConsole } from '../../support/console.ts';
import { createFolder } from '../../support/folder.ts';
import { operators } from '../../support/operators.ts';
import { hang, type Respond, startReceiver } from '../../support/receiver.ts';
import { startTestService } from '../../support/service.ts';

const PLANTED = 'pLaNtEd-password';

const says =
  (text: string, status = 200, headers: Record<string, string> = {}): Respond =>
  (response) =>
    void response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text);

const QUEUES = { filtered_count: 1, items: [{ name: 'billing', type: 'classic', consumers: 1 }] };
const BINDINGS = [{ destination: 'billing', destination_type: 'queue', routing_key: 'job.#' }];
const asRabbitmq: Respond = (response, { path }) =>
  void response.end(JSON.stringify(path.includes('/bindings/') ? BINDINGS : QUEUES));

/** For ever, as fast as it is read. */
const endless: Respond = (response) => {
  const chunk = Buffer.alloc(256 * 1024, ' ');
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more);
  more();
};

const urlOf = (port: number, scheme = 'http') => `${scheme}://look:${PLANTED}@127.0.0.1:${port}`;

const FAULTS: readonly (readonly [what: string, respond: Respond, words: string])[] = [
  ['that does not answer', hang, 'did not answer within 1 s'],
  ['that answers without end', endless, 'answered with more than 2 MiB'],
  ['that leads elsewhere', says('', 301, { Location: 'http://127.0.0.1:1/' }), 'answered with status 301'],
  ['that has a fault', says('{}', 500), 'answered with status 500'],
  ['without our virtual host', says('{}', 404), 'does not know the virtual host of AMQP_URL'],
  ['that is a page', says('<html>'), 'did not answer with JSON'],
  ['of another form', says('{"queues":[]}'), 'answered in another form than is known'],
  [
    'that hangs up',
    (response) => void response.destroy(),
    'cannot be asked: the connection failed (ECONNRESET)',
  ],
];

test.for(FAULTS)('a management API %s: what it is for says so, and works', async ([, respond, words]) => {
  await using receiver = await startReceiver(respond);
  await using service = await startTestService({ env: { BROKER_MANAGEMENT_URL: urlOf(receiver.port) } });
  const because = `RabbitMQ’s management API ${words}`;
  const api = await operators(service);

  const [first, second] = await Promise.all([
    api.get<DestinationList>('/destinations'),
    api.get<DestinationList>('/destinations'),
  ]);
  expect(first).toMatchObject({
    status: 200,
    body: { state: 'no_answer', because, items: [], warnings: [] },
  });
  expect(second.body).toEqual(first.body);
  const visit = await visitConsole(service);
  expect((await visit.get('/console/destinations')).text).toContain(`${because}.`);
  expect((await visit.get('/console/replays/new?kind=failed')).text).toContain('No events match');
  const cli = await cliOf(service);
  expect(await cli.run('destinations')).toMatchObject({ code: 1, stderr: `${because}\n` });

  // With the account, and one question for all who ask at about the same time.
  const [asked] = receiver.received;
  expect(asked?.headers.authorization).toBe(`Basic ${Buffer.from(`look:${PLANTED}`).toString('base64')}`);
  expect(JSON.stringify([first, service.log])).not.toContain(PLANTED);
});

test('where nothing listens, that is said', async () => {
  await using service = await startTestService({ env: { BROKER_MANAGEMENT_URL: urlOf(1) } });
  const { body } = await (await operators(service)).get<DestinationList>('/destinations');
  expect(body.because).toBe(
    'RabbitMQ’s management API cannot be asked: nothing listens there (ECONNREFUSED)',
  );
  expect(JSON.stringify(service.log)).not.toContain(PLANTED);
});

test('without an address nobody is asked, and the page says which variable it takes', async () => {
  await using service = await startTestService();
  const { body } = await (await operators(service)).get<DestinationList>('/destinations');
  expect(body).toMatchObject({ state: 'not_configured', items: [], queues: [] });
  const visit = await visitConsole(service);
  expect((await visit.get('/console/destinations')).text).toContain('BROKER_MANAGEMENT_URL is not set');
  expect(await (await cliOf(service)).run('destinations')).toMatchObject({
    code: 1,
    stderr: `${body.because}\n`,
  });
});

test('all who ask within some seconds share one question, in each of its two parts', async () => {
  await using receiver = await startReceiver(asRabbitmq);
  await using service = await startTestService({ env: { BROKER_MANAGEMENT_URL: urlOf(receiver.port) } });
  const api = await operators(service);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => api.get<DestinationList>('/destinations')),
  );
  expect(new Set(answers.map(({ body }) => body.at)).size).toBe(1);
  expect(receiver.received).toHaveLength(2);
  expect(new Set(receiver.received.map(({ path }) => path.split('?')[0]))).toEqual(
    new Set([`/api/exchanges/%2F/${service.exchange}/bindings/source`, '/api/queues/%2F']),
  );
});

test('over https the CA of BROKER_MANAGEMENT_CA_FILE is trusted, and without it nobody else', async () => {
  const authority = createAuthority();
  await using folder = await createFolder();
  const ca = await folder.write('ca.pem', authority.cert);
  await using receiver = await startReceiver(asRabbitmq, { certificate: authority.issue() });
  const url = urlOf(receiver.port, 'https');
  const read = async (env: Record<string, string>) => {
    await using service = await startTestService({ env: { BROKER_MANAGEMENT_URL: url, ...env } });
    return (await (await operators(service)).get<DestinationList>('/destinations')).body;
  };

  expect(await read({ BROKER_MANAGEMENT_CA_FILE: ca })).toMatchObject({
    state: 'answered',
    items: [{ name: 'billing', consumers: 1, messages: null }],
  });
  const { because } = await read({});
  expect(because).toContain('name the right one by BROKER_MANAGEMENT_CA_FILE');
  expect(because).not.toContain(PLANTED);
});

test('it is not for a token that is limited to some sources, and its form of a replay has no names', async () => {
  await using receiver = await startReceiver(asRabbitmq);
  await using service = await startTestService({ env: { BROKER_MANAGEMENT_URL: urlOf(receiver.port) } });
  const limited = { role: 'operator', sources: ['default'] } as const;
  expect((await (await operators(service, limited)).get('/destinations')).status).toBe(403);
  const visit = await visitConsole(service, limited);
  expect((await visit.get('/console/destinations')).status).toBe(403);
  const form = await visit.get('/console/replays/new');
  expect(form.status).toBe(200);
  expect(form.html).not.toContain('billing');
  expect(form.links.map(({ href }) => href)).not.toContain('/console/destinations');
  expect(receiver.received).toEqual([]);
});
