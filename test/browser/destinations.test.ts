// The page of destinations in a real browser, with what RabbitMQ's management API answers: how it looks, and the way from a queue to a
// replay, with JavaScript and without.

import { expect, test } from 'vitest';
import { describeInBrowser, type Look } from '../support/browser.ts';
import { listen, newExchange } from '../support/bus.ts';
import { signInBrowser } from '../support/console.ts';
import { faultsIn } from '../support/page-checks.ts';
import { hang, type Respond, startReceiver } from '../support/receiver.ts';
import { completed, deliver, newJobId } from '../support/sender.ts';
import { startTestService } from '../support/service.ts';

const MARKUP = '</td><script>alert(1)</script>';
const LOOKS: readonly Look[] = [
  { width: 1280, colorScheme: 'light' },
  { width: 768, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
];

const queue = (name: string, rest: object = {}) => ({
  name,
  type: 'quorum',
  messages: 0,
  consumers: 1,
  ...rest,
});
const bind = (destination: string, routing_key: string) => ({
  destination,
  destination_type: 'queue',
  routing_key,
});

/** As RabbitMQ answers, with these queues beside. */
function answersOf(...names: readonly string[]): Respond {
  const items = [
    queue('alarms', {
      type: 'classic',
      policy: 'short',
      messages: 1_000,
      messages_ready: 1_000,
      consumers: 0,
      effective_policy_definition: { 'max-length': 1_000, overflow: 'reject-publish' },
    }),
    queue(`${MARKUP}\u202e${'x'.repeat(100)}`),
    ...names.map((name) => queue(name)),
  ];
  const bindings = [
    bind('alarms', 'job.failed.*'),
    bind(`${MARKUP}\u202e${'x'.repeat(100)}`, `job.completed.${MARKUP}`),
    ...names.map((name) => bind(name, 'job.completed.*')),
  ];
  return (response, { path }) => {
    const body = path.includes('/bindings/') ? bindings : { items, filtered_count: items.length };
    response.end(JSON.stringify(body));
  };
}

const urlOf = (port: number) => `http://look:secret@127.0.0.1:${port}`;

describeInBrowser('destinations', (open) => {
  test('the page is accessible and fits, with its warnings, without an answer, and where nothing is configured', async () => {
    await using answering = await startReceiver(answersOf('billing'));
    await using silent = await startReceiver(hang);
    for (const env of [
      { BROKER_MANAGEMENT_URL: urlOf(answering.port) },
      { BROKER_MANAGEMENT_URL: urlOf(silent.port) },
      {},
    ]) {
      await using relay = await startTestService({ env });
      await using opened = await open({ baseUrl: relay.operators });
      await signInBrowser(opened.context, relay);
      for (const path of ['/console/destinations', '/console/replays/new']) {
        await opened.page.goto(path);
        expect({ path, faults: await faultsIn(opened.page, LOOKS) }).toEqual({ path, faults: [] });
      }
    }
  });

  test.for([true, false])(
    'from the list of queues to a replay to one of them, with JavaScript: %s',
    async (javaScriptEnabled) => {
      const exchange = newExchange();
      await using bus = await listen(exchange);
      await using own = await listen(exchange, { bindings: [], queue: `${exchange}.own` });
      await using management = await startReceiver(answersOf(own.queue, 'gone'));
      await using relay = await startTestService({
        exchange,
        env: { BROKER_MANAGEMENT_URL: urlOf(management.port) },
      });
      await deliver(relay.webhooks, completed(newJobId()));
      await bus.received(1);
      const { page, context } = await open({ baseUrl: relay.operators, javaScriptEnabled });
      await signInBrowser(context, relay, { role: 'operator' });

      await page.goto('/console');
      await page.getByRole('link', { name: 'Destinations', exact: true }).click();
      const main = page.getByRole('main');
      await main.getByText('queue alarms is full and refuses events (overflow=reject-publish)').waitFor();
      await main.getByText('nobody consumes queue alarms, and 1,000 messages wait in it').waitFor();
      await main.getByText('no queue is bound for progress events: they are returned').waitFor();
      const row = main.getByRole('row').filter({ hasText: own.queue });
      await row.getByText('completed of all sources').waitFor();
      await row.getByRole('link', { name: 'Replay to it' }).click();

      const field = page.getByLabel('Only to this queue');
      expect(await field.inputValue()).toBe(own.queue);
      const names = await page.evaluate<string[]>(
        `[...document.querySelector('input[name=queue]').list.options].map((option) => option.value)`,
      );
      expect(names).toEqual(['alarms', own.queue, 'gone']);

      // The list was made some seconds ago: whether the queue is there now, the preview tells.
      await page.getByLabel('Kind').selectOption('completed');
      await field.fill('gone');
      await page.getByRole('button', { name: 'Preview', exact: true }).click();
      await main.getByText('There is no queue gone: a replay to it is refused.').waitFor();
      expect(await page.getByRole('button', { name: /^Replay/ }).count()).toBe(0);
      await field.fill(own.queue);
      await page.getByRole('button', { name: 'Preview', exact: true }).click();
      await page.getByRole('button', { name: `Replay 1 event to the queue ${own.queue}` }).click();
      await own.received(1);
    },
  );
});
