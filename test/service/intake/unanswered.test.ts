// A recorded delivery whose sender did not get its answer says so: the repeat that follows has a visible cause.

import { expect, test } from 'vitest';
import { cliOf } from '../../support/cli.ts';
import { visitConsole } from '../../support/console.ts';
import { createTestDatabase } from '../../support/database.ts';
import { operators } from '../../support/operators.ts';
import { openRaw, rawPost } from '../../support/raw-http.ts';
import { completed, deliver, newJobId, sign } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

/** Commits of jobs wait while there is a row in `holds`, beyond every time-out of the server, as they do for a standby. */
const HOLD_COMMITS = `
  create table holds ();
  create function hold() returns trigger language plpgsql as $$
  begin
    while exists (select from holds) loop perform pg_sleep(0.01); end loop;
    return null;
  end $$;
  create constraint trigger hold after insert or update on jobs deferrable initially deferred
    for each row execute function hold()`;

test('a sender that left, and one that got 503 for what was recorded, are named by row, log, API, story and command line', async () => {
  await using database = await createTestDatabase();
  await database.query(HOLD_COMMITS);
  const hold = () => database.query('insert into holds default values');
  const letGo = () => database.query('delete from holds');
  const event = completed(newJobId());
  const rows = () =>
    database.query('select outcome, http_status, unanswered from deliveries order by received_at, id');

  {
    await using hasty = await startTestService({ database, env: { ANSWER_DEADLINE_MS: '500' } });
    await hold();
    expect(await deliver(hasty.webhooks, event)).toMatchObject({ status: 503 });
    await letGo();
    await expect.poll(rows).toHaveLength(1);
  }
  {
    await using relay = await startTestService({ database, env: { ANSWER_DEADLINE_MS: '9500' } });
    const metrics = async () => (await fetch(`${relay.operators}/metrics`)).text();
    await hold();
    using sender = await openRaw(relay.service.port);
    const body = JSON.stringify(event);
    sender.write(rawPost(body, { 'X-Service-Signature': sign(body) }));
    await expect.poll(metrics).toContain('tallyhook_write_queue_deliveries 1\n');
    sender.reset();
    await expect.poll(metrics).toContain('tallyhook_connections 0\n');
    await letGo();
    await expect.poll(rows).toHaveLength(2);
    expect(await deliver(relay.webhooks, event)).toMatchObject({ status: 200 });
    expect(relay.log.filter(({ msg }) => msg === 'delivery')).toMatchObject([
      { outcome: 'duplicate', status: 200, unanswered: 'left' },
      { outcome: 'duplicate', status: 200 },
    ]);
  }

  expect(await rows()).toEqual([
    { outcome: 'accepted', http_status: 202, unanswered: 'unavailable' },
    { outcome: 'duplicate', http_status: 200, unanswered: 'left' },
    { outcome: 'duplicate', http_status: 200, unanswered: null },
  ]);
  await using relay = await startTestService({ database });
  const api = await operators(relay);
  const { body: list } = await api.get<{ items: { id: string; unanswered: string }[] }>('/deliveries');
  expect(list.items.map(({ unanswered }) => unanswered)).toEqual([null, 'left', 'unavailable']);
  const [LEFT, LATE] = [
    'its sender had left before the answer',
    'its sender got 503, since the commit took too long',
  ];
  const console = await visitConsole(relay);
  const story = (await console.get(`/console/job?source=default&job_id=${event.job_id}`)).text;
  expect(story).toContain(`answered with 202, but ${LATE} · completed`);
  expect(story).toContain(`answered with 200, but ${LEFT} · completed`);
  expect((await console.get(`/console/deliveries/${list.items[1]?.id}`)).text).toContain(`200, but ${LEFT}`);
  const cli = await cliOf(relay);
  const shown = await cli.onTerminal(['deliveries', 'show', `${list.items[1]?.id}`]);
  expect(shown.screen).toContain(`200, but ${LEFT}`);
});
