// Putting things right from the command line: the outbox, the quarantine, and replays.

// oxlint-disable vitest/no-standalone-expect -- `it` is vitest's test with a fixture, which the rule does not know

import { expect, test } from 'vitest';
import { type Apart, listenApart, testApart as it } from '../../support/apart.ts';
import { cliOf, cliWith, parseLines } from '../../support/cli.ts';
import { untilNonePending } from '../../support/facts.ts';
import { DECIDED } from '../../support/operators.ts';
import { startReceiver } from '../../support/receiver.ts';
import { replayToNobody } from '../../support/replays.ts';
import { startProcess } from '../../support/replica.ts';
import { completed, deliver, failed, newJobId } from '../../support/sender.ts';
import { OUTBOX } from '../../support/outbox.ts';

/** Only completions are wanted on the bus, and the operator knows of this test's source alone. */
async function start(apart: Apart) {
  const { relay, source, webhooks } = apart;
  const bus = await listenApart(apart, ['completed']);
  return {
    ...apart,
    bus,
    cli: await cliOf(relay, { role: 'operator', name: OPERATOR, sources: [source] }),
    idOf: (job: string, kind: 'completed' | 'failed') => `${source}:${job}:${kind}`,
    send: async (...bodies: Parameters<typeof deliver>[1][]) => {
      for (const body of bodies) await deliver(webhooks, body);
    },
    /** A queue that is bound to nothing. */
    queueFor: async (name: string) => {
      const queue = `${relay.exchange}.${source}.${name}`;
      await bus.channel.assertQueue(queue, { exclusive: true });
      const ids: { id: string; headers: unknown }[] = [];
      await bus.channel.consume(queue, (message) => {
        if (message === null) return;
        ids.push({ id: String(message.properties.messageId), headers: message.properties.headers });
      });
      return { queue, messages: ids };
    },
    [Symbol.asyncDispose]: bus[Symbol.asyncDispose],
  };
}

const OPERATOR = 'operator of the test';

it('outbox lists what waits for an operator, and sends it again on request', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, bus, relay, source, idOf } = place;
  const [one, two] = [newJobId(), newJobId()];
  await place.send(failed(one), failed(two));
  await expect.poll(() => cli.items('outbox')).toHaveLength(2);

  const [entry] = await cli.items('outbox');
  expect(entry).toMatchObject({
    event_id: idOf(one, 'failed'),
    state: 'returned',
    last_error: '312 NO_ROUTE',
  });
  expect(await cli.items('outbox', 'returned')).toHaveLength(2);
  expect(await cli.items('outbox', 'parked')).toEqual([]);

  await bus.channel.bindQueue(bus.queue, relay.exchange, `job.failed.${source}`);
  expect(await cli.items('outbox', 'retry', idOf(one, 'failed'))).toMatchObject([{ result: 'retried' }]);
  await bus.received(1);
  expect(await cli.items('outbox', 'retry', 'returned')).toEqual([{ retried: 1 }]);
  await bus.received(2);
  expect(bus.ids()).toEqual([idOf(one, 'failed'), idOf(two, 'failed')]);
  expect(await cli.run('outbox')).toEqual({ code: 0, stdout: '', stderr: 'nothing is returned or parked\n' });
  expect(await cli.run('outbox', 'retry', 'returned')).toMatchObject({ code: 1 });
  expect(await cli.run('outbox', 'retry', idOf(one, 'failed'))).toMatchObject({ code: 1 });
});

it('what a replay holds in the outbox is no event to be put back, but is told of', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, relay, source, bus, idOf } = place;
  const job = newJobId();
  await place.send(completed(job));
  await bus.received(1);
  await untilNonePending(relay.database);
  await replayToNobody(relay.database, { ids: [idOf(job, 'completed')] });
  await expect.poll(() => cli.items('outbox', 'returned')).toHaveLength(1);

  expect(await cli.run('outbox')).toEqual({ code: 0, stdout: '', stderr: 'nothing is returned or parked\n' });
  const retried = await cli.run('outbox', 'retry', 'returned');
  expect(retried).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'nothing that matches waits in the outbox\n',
  });
  await place.send(failed(newJobId()));
  await expect.poll(() => cli.items('outbox')).toHaveLength(1);
  expect(await cli.items('outbox')).toMatchObject([{ replay_id: null }]);
  expect(await cli.items('outbox', 'list')).toHaveLength(2);
  expect(await relay.database.query(`select from ${OUTBOX} where source = $1`, [source])).toHaveLength(2);
  expect((await cli.onTerminal(['outbox'])).screen).toContain('; 1 copy of replays');
});

it('outbox park and discard decide about one event, by its id', async ({ apart }) => {
  await using place = await start(apart);
  const { cli } = place;
  const job = newJobId();
  const id = place.idOf(job, 'failed');
  await place.send(failed(job));
  await expect.poll(() => cli.items('outbox')).toHaveLength(1);

  expect(await cli.items('outbox', 'park', id)).toMatchObject([{ event_id: id, result: 'parked' }]);
  expect(await cli.items('outbox', 'parked')).toHaveLength(1);
  expect(await cli.items('outbox', 'discard', id)).toMatchObject([{ event_id: id }]);
  expect(await cli.items('outbox')).toEqual([]);
  const again = await cli.run('outbox', 'discard', id);
  expect(again).toMatchObject({ code: 1, stdout: '' });
});

it('quarantine release tries again, one or all, and says what is still not understood', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, relay, idOf } = place;
  await place.send(
    ...Array.from({ length: 3 }, () => ({ job_id: newJobId(), status: 'paused' })),
    completed(newJobId()),
  );
  const waiting = await cli.items('quarantine', 'list');
  expect(waiting).toHaveLength(3);
  const id = String(waiting[0]?.['id']);

  const one = await cli.run('quarantine', 'release', id);
  expect(one.code).toBe(1);
  expect(parseLines(one.stdout)).toMatchObject([{ delivery_id: id, result: 'still_quarantined' }]);
  // As if the schemas had learned what they did not know: the body is what they know now.
  const job = newJobId();
  await relay.database.query(
    `update deliveries set body = convert_to($2, 'UTF8'), job_id = $3, status = 'completed' where id = $1`,
    [id, JSON.stringify(completed(job)), job],
  );
  const all = await cli.run('quarantine', 'release', '--all');
  expect(all).toMatchObject({ code: 1, stderr: expect.stringContaining('3 deliveries: ') as unknown });
  const results = parseLines<{ delivery_id: string; result: string }>(all.stdout);
  expect(results.filter(({ result }) => result === 'accepted')).toMatchObject([
    { delivery_id: id, event_id: idOf(job, 'completed') },
  ]);
  expect(await cli.items('quarantine', 'list')).toHaveLength(2);
  expect(await cli.items('quarantine', 'list', '--state', 'released')).toHaveLength(1);
  await place.bus.received(2);
});

it('quarantine discard gives up some by their ids or all that match, with a note, and asks before', async ({
  apart,
}) => {
  await using place = await start(apart);
  const { cli } = place;
  await place.send(...Array.from({ length: 4 }, () => ({ job_id: newJobId(), status: 'paused' })), {
    job_id: newJobId(),
    status: 'resumed',
  });
  const ids = (await cli.items<{ id: string }>('quarantine', 'list', '--status', 'paused')).map(
    ({ id }) => id,
  );
  const [one = '', two = ''] = ids;

  expect(await cli.run('quarantine', 'discard', one)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--note TEXT is missing') as unknown,
  });
  expect(await cli.run('quarantine', 'discard', one, '--note', 'sent by mistake')).toMatchObject({ code: 0 });
  const some = await cli.run('quarantine', 'discard', one, two, '--note', 'sent by mistake');
  expect(some).toMatchObject({ code: 1, stderr: expect.stringContaining(`${one}: it is not in`) as unknown });
  expect(parseLines(some.stdout)).toMatchObject([{ delivery_id: two, result: 'discarded' }]);
  expect(await cli.items('quarantine', 'list', '--state', 'discarded')).toMatchObject(
    [one, two].map((id) => ({ id, discard_note: 'sent by mistake', discarded_by: OPERATOR })),
  );
  expect(await cli.run('quarantine', 'release', one)).toMatchObject({ code: 1 });

  const all = ['quarantine', 'discard', '--all', '--status', 'paused'];
  const [dry] = await cli.items(...all, '--dry-run');
  expect(dry).toMatchObject({ matched: 2, matched_exactly: true });
  expect(await cli.run(...all, '--note', 'so too')).toMatchObject({ code: 2, stdout: '' });
  expect(await cli.run(...all, '--yes')).toMatchObject({ code: 2, stdout: '' });
  expect(await cli.run('quarantine', 'discard', one, '--all', '--yes', '--note', 'x')).toMatchObject({
    code: 2,
  });
  expect(await cli.items('quarantine', 'list')).toHaveLength(3);
  expect(await cli.items(...all, '--note', 'so too', '--yes')).toEqual([{ discarded: 2 }]);
  expect(await cli.items('quarantine', 'list')).toMatchObject([{ status: 'resumed' }]);
  expect(await cli.items('quarantine', 'list', '--state', 'discarded')).toHaveLength(4);
  expect(await cli.run(...all, '--note', 'so too', '--yes')).toMatchObject({ code: 1, stdout: '' });
});

it('quarantine discard --all shows what it would give up, and a no gives up nothing', async ({ apart }) => {
  await using place = await start(apart);
  await place.send({ job_id: 'unwanted', status: 'paused' }, { job_id: newJobId(), status: 'paused' });

  const order = ['quarantine', 'discard', '--all', '--note', 'sent by mistake'];
  const { code, screen } = await place.cli.onTerminal(order, 'n\n');

  expect(code).toBe(1);
  expect(screen).toContain('unwanted');
  expect(screen).toContain('Discard 2 deliveries for good? [y/N]');
  expect(screen).toContain('nothing was discarded');
  expect(await place.cli.items('quarantine', 'list')).toHaveLength(2);
  const yes = await place.cli.onTerminal(order, 'y\n');
  expect(yes).toMatchObject({
    code: 0,
    screen: expect.stringContaining('2 deliveries discarded') as unknown,
  });
  expect(await place.cli.items('quarantine', 'list')).toEqual([]);
});

it('replay counts first, and sends to one queue what matches, marked as a replay', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, relay, bus, idOf } = place;
  const jobs = Array.from({ length: 12 }, () => newJobId());
  await place.send(...jobs.map((job) => completed(job)));
  await bus.received(12);
  await untilNonePending(relay.database);
  const { queue, messages } = await place.queueFor('refill');

  const [dry] = await cli.items('replay', '--kind', 'completed', '--from', '1h', '--dry-run');
  expect(dry).toMatchObject({ matched: 12, matched_exactly: true });
  expect(dry?.['sample']).toHaveLength(10);
  const order = ['replay', '--kind', 'completed', '--from', '1h', '--queue', queue, '--note', 'a test'];
  expect(await cli.run(...order)).toMatchObject({ code: 2, stdout: '' });
  expect(await cli.items('replays', 'list')).toEqual([]);

  const run = await cli.run(...order, '--yes');
  expect(run.code).toBe(0);
  expect(run.stderr).toContain('12 events, among them:');
  const [replay] = parseLines<{ id: string }>(run.stdout);
  expect(replay).toMatchObject({
    state: 'finished',
    queue,
    note: 'a test',
    counts: { matched: 12, confirmed: 12, returned: 0, failed: 0, skipped: 0 },
  });
  await expect.poll(() => messages.length).toBe(12);
  expect(messages.map(({ id }) => id).toSorted()).toEqual(
    jobs.map((job) => idOf(job, 'completed')).toSorted(),
  );
  expect(messages[0]?.headers).toMatchObject({ replay: replay?.id, replayed_by: OPERATOR });
  expect(bus.messages).toHaveLength(12);
  expect(await cli.items('replays', 'show', replay?.id ?? '')).toMatchObject([{ state: 'finished' }]);
  expect(await cli.items('publications', 'list', '--replay', replay?.id ?? '')).toHaveLength(12);
  // All of them are shown: there are no others.
  const one = await cli.run('replay', idOf(jobs[0] ?? '', 'completed'), '--queue', queue, '--yes');
  expect(one.stderr).toContain('1 event:\n');
});

it('a replay can be left, paused, gone on with and cancelled; Ctrl-C leaves it running and says so', async ({
  apart,
}) => {
  await using place = await start(apart);
  const { cli, relay, bus } = place;
  await place.send(...Array.from({ length: 30 }, () => completed(newJobId())));
  await bus.received(30);
  await untilNonePending(relay.database);
  const { queue } = await place.queueFor('slow');

  const order = ['replay', '--source', place.source, '--queue', queue, '--rate', '1', '--yes'];
  await using watching = startProcess(order, { env: cli.env });
  await expect.poll(() => cli.items('replays', 'list')).toHaveLength(1);
  const [replay] = await cli.items('replays', 'list', '--state', 'running');
  const id = String(replay?.['id']);
  watching.child.kill('SIGINT');
  expect(await watching.exited).toEqual({ code: 0, signal: null });
  expect(watching.stderr()).toContain(`see "tallyhook replays show ${id}"`);

  expect(await cli.items('replays', 'pause', id)).toMatchObject([{ state: 'paused' }]);
  expect(await cli.run('replays', 'watch', id)).toMatchObject({ code: 1 });
  expect(await cli.items('replays', 'resume', id)).toMatchObject([{ state: 'running' }]);
  expect(await cli.items('replays', 'cancel', id)).toMatchObject([{ state: 'cancelled' }]);
  const again = await cli.run('replays', 'resume', id);
  expect(again).toMatchObject({ code: 1, stdout: '' });
});

it('replay of events by their ids; what matches nothing is exit code 1', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, relay, bus, idOf } = place;
  const job = newJobId();
  await place.send(completed(job));
  await bus.received(1);
  await untilNonePending(relay.database);

  const run = await cli.run('replay', idOf(job, 'completed'), '--yes');
  expect(run.code).toBe(0);
  await bus.received(2);
  expect(bus.ids()).toEqual([idOf(job, 'completed'), idOf(job, 'completed')]);
  const nothing = await cli.run('replay', '--job', 'job_nobody', '--yes');
  expect(nothing).toMatchObject({ code: 1, stdout: '', stderr: 'no events match\n' });
});

test('an action carries one key on every try, and another action another', async () => {
  await using service = await startReceiver((response, _received, index) => {
    if (index === 0) response.destroy();
    else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(DECIDED));
  });
  const cli = cliWith({ TALLYHOOK_URL: `http://127.0.0.1:${service.port}`, TALLYHOOK_TOKEN: 'thk_test_x' });

  expect(await cli.run('outbox', 'retry', '7')).toMatchObject({ code: 0 });
  expect(await cli.run('outbox', 'retry', '7')).toMatchObject({ code: 0 });

  const keys = service.received.map(({ headers }) => headers['idempotency-key']);
  expect(keys[0]).toMatch(/^[0-9a-f-]{36}-1$/);
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

it('on a terminal a replay is asked for, and only "y" begins it', async ({ apart }) => {
  await using place = await start(apart);
  const { cli, relay, bus, idOf } = place;
  const job = newJobId();
  await place.send(completed(job));
  await bus.received(1);
  await untilNonePending(relay.database);
  const id = idOf(job, 'completed');

  const no = await cli.onTerminal(['replay', id], 'n\n');
  const yes = await cli.onTerminal(['replay', id, '--detach'], 'y\n');

  expect(no).toMatchObject({ code: 1, screen: expect.stringContaining('nothing was replayed') as unknown });
  expect(no.screen).toContain('Publish 1 event again on the exchange, to all who are bound there');
  expect(yes).toMatchObject({
    code: 0,
    screen: expect.stringMatching(/replay [0-9a-f-]{36} running/) as unknown,
  });
  await bus.received(2);
});
