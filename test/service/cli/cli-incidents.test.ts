// `alerts`, `check` and a piped `outbox` against a real service: what each says, where it says it, and its exit code.

import { expect, test } from 'vitest';
import { startBehindProxy } from '../../support/behind-proxy.ts';
import { cliOf, type Cli, cliWith } from '../../support/cli.ts';
import { insertIncident } from '../../support/incidents.ts';
import { newToken } from '../../support/operators.ts';
import { startProxy } from '../../support/proxy.ts';
import { AT_ONCE } from '../../support/quick-watch.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { serviceEnv } from '../../support/service-env.ts';
import { startTestService } from '../../support/service.ts';
import { shareTestService } from '../../support/shared-service.ts';
import { until } from '../../support/until.ts';

const fresh = shareTestService();

/** Of a check that ends with this code and begins so. */
const untilCheck = (cli: Cli, code: number, ...options: string[]) =>
  until(
    `a check that ends with ${code}`,
    async () => {
      const found = await cli.run('check', ...options);
      return found.code === code ? found : undefined;
    },
    { limitMs: 30_000 },
  );

test('a service without incidents says so, and a check of it is OK', async () => {
  const cli = await cliOf(fresh(), { role: 'viewer' });
  const { screen } = await cli.onTerminal(['alerts']);
  expect(screen).toContain('going on\nnothing is going on\n');
  expect(screen).toContain('nothing else was\n');
  expect(await cli.run('alerts')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^no incident is open, and none ended since 2/),
  });

  const { stdout, stderr } = await untilCheck(cli, 0);
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^TALLYHOOK OK - none of 17 conditions is so \| pending=0 oldest=0s returned=0 parked=0 quarantine=0 conflicts=0 stuck_jobs=0\n$/,
  );
  expect(await cli.run('check', '--quiet')).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('alerts show what goes on, what was since yesterday, and what is not an incident yet', async () => {
  await using relay = await startTestService();
  const { database } = relay;
  await insertIncident(database, {
    condition: 'source-silent',
    subject: 'team-a',
    severity: 'critical',
    beganAgo: '3 hours',
  });
  await insertIncident(database, {
    condition: 'broker-away',
    severity: 'critical',
    beganAgo: '25 hours',
    endedAgo: '23 hours',
    eventsWaited: 1_234,
    decidedBy: ['Ada'],
  });
  await insertIncident(database, {
    condition: 'disk-full',
    severity: 'critical',
    beganAgo: '3 days',
    endedAgo: '2 days',
  });
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });
  const cli = await cliOf(relay, { role: 'viewer' });

  const names = async (...options: string[]) =>
    (await cli.items('alerts', ...options)).map(({ condition }) => condition);
  expect(await names()).toEqual(['source-silent', 'broker-away']);
  expect(await names('--since', '7d')).toEqual(['source-silent', 'broker-away', 'disk-full']);
  expect(await names('list', '--state', 'ended')).toEqual(['broker-away', 'disk-full']);

  const { screen } = await cli.onTerminal(['alerts']);
  const [goingOn = '', was = ''] = screen.split('\nsince ');
  expect(goingOn).toMatch(/source-silent +team-a +3 h 0 min/);
  expect(goingOn).toMatch(/not an incident yet\ncondition +what\nquarantine +1 delivery waits in quarantine/);
  expect(was).toMatch(/broker-away .*2 h 0 min +1,234 +Ada/);
  expect(was).not.toContain('disk-full');
});

test('an event that no queue takes becomes an incident, and alerts tell of it from its begin to its end', async () => {
  await using relay = await startTestService({ watchTiming: AT_ONCE });
  const cli = await cliOf(relay);
  await deliver(relay.webhooks, completed(newJobId()));
  const found = (state: string) =>
    until(
      `an incident that is ${state}`,
      async () => {
        const [incident] = await cli.items('alerts', 'list', '--condition', 'returned');
        return incident?.['state'] === state ? incident : undefined;
      },
      { limitMs: 30_000 },
    );
  expect(await found('open')).toMatchObject({ severity: 'critical', summary: '1 event is returned.' });
  expect(await cli.items('outbox', 'discard', '--all', '--state', 'returned', '--yes')).toHaveLength(1);
  expect(await found('ended')).toMatchObject({ ended_at: expect.stringMatching(/Z$/) });
  expect((await cli.items('alerts')).map(({ condition }) => condition)).toContain('returned');
});

test('a test of channels that are not configured fails, and says where they are configured', async () => {
  const admin = await cliOf(fresh());
  expect(await admin.run('alerts', '--send-test')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'no channel is configured: see ALERTS_FILE in docs/configuration.md\n',
  });
  const viewer = await cliOf(fresh(), { role: 'viewer' });
  expect(await viewer.run('alerts', '--send-test')).toMatchObject({ code: 1, stdout: '' });
});

test('a check is WARNING with a delivery in quarantine, and CRITICAL with a returned event; options choose', async () => {
  await using relay = await startTestService();
  const cli = await cliOf(relay, { role: 'viewer' });
  await deliver(relay.webhooks, { job_id: newJobId(), status: 'unheard_of' });
  const warning = await untilCheck(cli, 1);
  expect(warning.stdout).toMatch(/^TALLYHOOK WARNING - quarantine \| pending=0 .*quarantine=1 /);
  expect(warning.stdout).toContain(
    '\nWARNING quarantine: 1 delivery waits in quarantine. (docs/runbook.md#quarantine)\n',
  );
  await deliver(relay.webhooks, completed(newJobId()));
  const critical = await untilCheck(cli, 2, '--quiet');
  expect(critical.stdout).toMatch(/^TALLYHOOK CRITICAL - returned, quarantine \| .*returned=1 /);

  expect(await cli.run('check', '--ignore', 'returned,quarantine')).toMatchObject({ code: 0 });
  expect(await cli.run('check', '--only', 'quarantine')).toMatchObject({ code: 1 });
  expect(await cli.run('check', '--only', 'broker-away,parked')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^TALLYHOOK OK - none of 2 conditions is so \|/),
  });
});

const unknown = (text: RegExp) => ({
  code: 3,
  stdout: expect.stringMatching(text),
  stderr: '',
});

test('a check that cannot be made is UNKNOWN, whatever the reason, and says which', async () => {
  const cli = await cliOf(fresh(), { role: 'viewer' });
  expect(await cli.run('check', '--only', 'brokr')).toEqual(
    unknown(/^TALLYHOOK UNKNOWN - --only takes outbox-lag, .*\nTry "tallyhook check --help"\.\n$/),
  );
  expect(await cli.run('check', 'now')).toEqual(unknown(/^TALLYHOOK UNKNOWN - unexpected argument "now"\n/));
  expect(await cliWith({}).run('check')).toEqual(
    unknown(/^TALLYHOOK UNKNOWN - config_invalid: .*TALLYHOOK_TOKEN/),
  );
  const [{ value }, scraper, limited] = [
    await newToken(fresh().database),
    await cliOf(fresh(), { role: 'scraper' }),
    await cliOf(fresh(), { role: 'viewer', sources: ['team-a'] }),
  ];
  const revoked = cliWith({ TALLYHOOK_URL: fresh().operators, TALLYHOOK_TOKEN: `${value.slice(0, -3)}abc` });
  expect(await revoked.run('check')).toEqual(
    unknown(/^TALLYHOOK UNKNOWN - unauthorized: .*\nCheck that TALLYHOOK_TOKEN/),
  );
  expect(await scraper.run('check')).toEqual(unknown(/^TALLYHOOK UNKNOWN - forbidden: /));
  expect(await limited.run('check')).toEqual(unknown(/^TALLYHOOK UNKNOWN - forbidden: /));
  const nobody = cliWith({ TALLYHOOK_URL: 'http://127.0.0.1:1', TALLYHOOK_TOKEN: value });
  expect(await nobody.run('check', '--timeout', '1s', '--quiet')).toEqual(
    unknown(/^TALLYHOOK UNKNOWN - .*\(within 1 second\)\n$/),
  );
  expect(await cli.run('check', '--help')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Its exit codes are those of Nagios'),
  });
});

test('while RabbitMQ is away a check is CRITICAL, and a piped outbox says how many events wait', async () => {
  const { AMQP_URL } = serviceEnv({ databaseUrl: '', exchange: '' });
  await using proxy = await startProxy(AMQP_URL, { defaultPort: 5672 });
  await using relay = await startTestService({ env: { AMQP_URL: proxy.url } });
  const cli = await cliOf(relay, { role: 'viewer' });
  await untilCheck(cli, 0);
  proxy.refuse();
  proxy.cut();
  await untilCheck(cli, 2, '--only', 'broker-away');
  await deliver(relay.webhooks, completed(newJobId()));
  await deliver(relay.webhooks, completed(newJobId()));

  const piped = await cli.run('outbox');
  expect(piped).toMatchObject({ code: 0, stdout: '' });
  expect(piped.stderr).toMatch(
    /^2 events pending, the oldest recorded .* ago\nNo replica can publish: .* What is pending waits for RabbitMQ, and goes on by itself\.\nnothing is returned or parked\n$/,
  );
  expect(await cli.items('outbox', 'counts')).toMatchObject([
    {
      counts: { pending: 2, returned: 0, parked: 0 },
      counts_complete: true,
      oldest_pending_at: expect.stringMatching(/Z$/),
    },
  ]);
  expect((await cli.onTerminal(['outbox', 'counts'])).screen).toMatch(
    /^2 pending, the oldest recorded .* ago; 0 returned; 0 parked\n$/,
  );
  expect((await cli.run('check')).stdout).toMatch(
    /^TALLYHOOK CRITICAL - broker-away \| pending=2 oldest=\d+s /,
  );
  proxy.heal();
  await untilCheck(cli, 0, '--only', 'broker-away');
});

test('without Postgres a check is CRITICAL, and one of what only Postgres knows is UNKNOWN', async () => {
  await using place = await startBehindProxy();
  const cli = await cliOf(place.relay, { role: 'viewer' });
  await untilCheck(cli, 0);
  place.takeAway();
  const { stdout } = await untilCheck(cli, 2, '--only', 'postgres-away,quarantine');
  expect(stdout).toMatch(
    /^TALLYHOOK CRITICAL - postgres-away\nCRITICAL postgres-away: Postgres has taken no deliveries for /,
  );
  expect(stdout).toContain('\nUNKNOWN quarantine: Postgres does not answer\n');
  expect(await cli.run('check', '--only', 'quarantine')).toMatchObject({
    code: 3,
    stdout: 'TALLYHOOK UNKNOWN - Postgres does not answer: quarantine\n',
  });
});
