// Whether the queue of a replay is there: the preview says so, and a replay to one that is not there is refused, in the same words
// in the API, the command line and the console.

import { expect, test } from 'vitest';
import { amqpUrl, listen, newExchange } from '../../support/bus.ts';
import { cliOf } from '../../support/cli.ts';
import { type PageAnswer, visitConsole } from '../../support/console.ts';
import { type Answer, operators, type Operators } from '../../support/operators.ts';
import { startProxy } from '../../support/proxy.ts';
import { replayToNobody, seedEvents, stateOf } from '../../support/replays.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/waits.ts';

const REFUSED = 'there is no queue no.such.queue: a replay to it is refused';
const NOT_SAID =
  'RabbitMQ did not say whether there is a queue no.such.queue: without one, the replay pauses';

const order = (queue?: string) => ({
  filter: { kind: 'completed' },
  ...(queue !== undefined && { queue }),
});
const preview = (api: Operators, queue?: string): Promise<Answer<{ queue_state: string | null }>> =>
  api.post('/replays', { ...order(queue), dry_run: true });

const untilReady = (api: Operators) =>
  waitFor(async () => expect((await preview(api, 'no.such.queue')).body.queue_state).toBe('missing'), {
    timeout: 20_000,
    interval: 50,
  });

const orderForm = (page: PageAnswer) =>
  page.forms.find(({ action, method }) => action === '/console/replays/new' && method === 'post');

async function untilAway({ operators: address }: TestService): Promise<void> {
  await expect
    .poll(async () => await (await fetch(`${address}/readyz`)).json(), { timeout: 20_000 })
    .toMatchObject({ rabbitmq: 'disconnected' });
}

test('a dry run says of a queue whether RabbitMQ has it, and leaves the relay’s connection as it was', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange);
  await using shared = await listen(exchange, { bindings: [], queue: `${exchange}.shared` });
  await using service = await startTestService({ exchange });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 2);
  await untilReady(api);

  expect((await preview(api)).body).toMatchObject({ matched: 2, queue_state: null });
  expect((await preview(api, shared.queue)).body).toMatchObject({ matched: 2, queue_state: 'exists' });
  // Another connection's alone: the broker refuses to declare it, and delivers to it.
  expect((await preview(api, bus.queue)).body).toMatchObject({ queue_state: 'exists' });
  expect(await preview(api, 'no.such.queue')).toMatchObject({
    status: 200,
    body: { queue_state: 'missing' },
  });
  await deliver(service.webhooks, completed(newJobId()));
  await bus.received(1);
  expect(service.log.filter(({ msg }) => msg === 'broker connected')).toHaveLength(1);
  expect(service.log.filter(({ level }) => level === 'warn')).toEqual([]);
  await shared.channel.deleteQueue(shared.queue);
  expect((await preview(api, shared.queue)).body).toMatchObject({ queue_state: 'missing' });
});

test('a replay to a queue that is not there is refused everywhere in the same words, and leaves nothing', async () => {
  await using service = await startTestService();
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 2);
  await untilReady(api);

  expect(await api.post('/replays', order('no.such.queue'))).toMatchObject({
    status: 409,
    body: { error: 'no_such_queue', message: REFUSED },
  });

  const cli = await cliOf(service, { role: 'operator' });
  const command = ['replay', '--kind', 'completed', '--queue', 'no.such.queue'];
  const dry = await cli.run(...command, '--dry-run');
  expect(dry).toMatchObject({ code: 1, stderr: `${REFUSED}\n` });
  expect(JSON.parse(dry.stdout)).toMatchObject({ matched: 2, queue_state: 'missing' });
  const real = await cli.run(...command, '--yes');
  expect(real).toMatchObject({ code: 1, stdout: '' });
  expect(real.stderr.endsWith(`${REFUSED}\n`)).toBe(true);

  const visit = await visitConsole(service, { role: 'operator' });
  const page = await visit.get('/console/replays/new?kind=completed&queue=no.such.queue');
  expect(page.status).toBe(200);
  expect(page.text).toContain(`T${REFUSED.slice(1)}.`);
  expect(page.text).toContain('2 events');
  expect(page.text).not.toContain('To the queue');
  expect(orderForm(page)).toBeUndefined();
  expect(await service.database.query('select from replays')).toEqual([]);
  expect(await service.database.query(`select from operator_log where action = 'replay.create'`)).toEqual([]);
});

test('a queue that went after the preview: the button is answered with the refusal', async () => {
  const exchange = newExchange();
  await using bus = await listen(exchange, { bindings: [], queue: `${exchange}.goes` });
  await using service = await startTestService({ exchange });
  await seedEvents(service.database, 1);
  await untilReady(await operators(service));
  const visit = await visitConsole(service, { role: 'operator' });
  const page = await visit.get(`/console/replays/new?kind=completed&queue=${bus.queue}`);
  await bus.channel.deleteQueue(bus.queue);

  const refused = await visit.submit(orderForm(page));

  expect(refused.status).toBe(409);
  expect(refused.text).toContain(`here is no queue ${bus.queue}: a replay to it is refused`);
});

test('while RabbitMQ is away the preview says that it could not tell, and a replay is taken', async () => {
  await using service = await startTestService({ env: { AMQP_URL: 'amqp://127.0.0.1:1' } });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 2);

  expect(await preview(api, 'no.such.queue')).toMatchObject({
    status: 200,
    body: { matched: 2, queue_state: 'unknown' },
  });
  const cli = await cliOf(service, { role: 'operator' });
  const dry = await cli.run('replay', '--kind', 'completed', '--queue', 'no.such.queue', '--dry-run');
  expect(dry).toMatchObject({ code: 0, stderr: `${NOT_SAID}\n` });
  const visit = await visitConsole(service, { role: 'operator' });
  const page = await visit.get('/console/replays/new?kind=completed&queue=no.such.queue');
  expect(page.text).toContain(`${NOT_SAID}.`);
  expect((await visit.submit(orderForm(page))).status).toBe(303);
  expect((await api.post('/replays', order('no.such.queue'))).status).toBe(202);
});

test('a RabbitMQ that does not answer holds up no preview: all say that they could not tell', async () => {
  await using proxy = await startProxy(amqpUrl(), { defaultPort: 5672 });
  await using service = await startTestService({ env: { AMQP_URL: proxy.url } });
  const api = await operators(service, { role: 'operator' });
  await seedEvents(service.database, 2);
  await untilReady(api);
  proxy.stall();

  const found = await Promise.all(Array.from({ length: 12 }, () => preview(api, 'no.such.queue')));

  expect(new Set(found.map(({ status, body }) => `${status} ${body.queue_state}`))).toEqual(
    new Set(['200 unknown']),
  );
  // The service believes still that it is connected: it was not the loss that answered.
  expect(await (await fetch(`${service.operators}/readyz`)).json()).toMatchObject({
    rabbitmq: 'connected',
  });
  proxy.heal();
  await untilReady(api);
  proxy.refuse();
  proxy.cut();
  await untilAway(service);
  expect((await preview(api, 'no.such.queue')).body.queue_state).toBe('unknown');
});

test('a replay whose queue went after it was ordered is paused, and says why', async () => {
  await using service = await startTestService();
  await seedEvents(service.database, 2);
  const { id } = await replayToNobody(service.database, { filter: { source: 'default' } });
  await waitFor(
    async () =>
      expect(await stateOf(service.database, id)).toEqual({
        state: 'paused',
        paused_because: 'there is no queue nobody',
      }),
    { timeout: 20_000, interval: 50 },
  );
});
