// What compose.yaml starts, as far as it can be started without containers: its accounts on servers of the test's own, which are made as
// its images make them, two replicas with its environment, and its proxy before them.

import { execFile } from 'node:child_process';
import { closeSync, copyFileSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../scripts/relay.ts';
import { lastLines, makeThrowAwayFolder } from '../../scripts/services/folders.ts';
import { createGuard } from '../../scripts/services/guard.ts';
import { answers, findFreePort } from '../../scripts/services/ports.ts';
import { type RabbitmqServer, startRabbitmq } from '../../scripts/services/rabbitmq.ts';
import { listen } from '../support/bus.ts';
import { createFolder } from '../support/folder.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/own-servers.ts';
import { patience } from '../support/patience.ts';
import { type Replica, runProcess, startReplica } from '../support/replica.ts';
import { askFrom } from '../support/requests.ts';
import { completed, newJobId, sign } from '../support/sender.ts';
import { queryOnce } from '../support/transaction.ts';
import { until } from '../support/until.ts';

const { TEST_DOCKER_COMPOSE, TEST_HAPROXY, TEST_PSQL } = process.env;
const exec = promisify(execFile);
const PASSWORDS = {
  POSTGRES_PASSWORD: 'of-the-superuser',
  MIGRATION_PASSWORD: 'of-the-owner',
  RUN_PASSWORD: 'of-the-service',
  RABBITMQ_PASSWORD: 'of-the-account',
};
const text = readFileSync(join(ROOT, 'compose.yaml'), 'utf8');

test.skipIf(!TEST_DOCKER_COMPOSE)('Compose takes compose.yaml, and refuses a misspelt key', async () => {
  await using folder = await createFolder();
  const check = async (content: string) => {
    const file = await folder.write('compose.yaml', content);
    return exec(String(TEST_DOCKER_COMPOSE), ['--file', file, 'config'], {
      env: { ...process.env, ...PASSWORDS },
    });
  };
  const { stdout } = await check(text);
  const { services } = parse(stdout) as { services: Record<string, unknown> };
  expect(Object.keys(services).toSorted()).toEqual([
    'migrate',
    'postgres',
    'proxy',
    'rabbitmq',
    'relay-1',
    'relay-2',
  ]);
  await expect(check(text.replaceAll('read_only:', 'read_onyl:'))).rejects.toThrow(/read_onyl/);
});

test.skipIf(!TEST_HAPROXY || !TEST_PSQL)(
  'its accounts are no administrators, and suffice for the migration and two replicas behind its proxy, one of which may stop',
  async () => {
    await using resources = new AsyncDisposableStack();
    const [postgres, broker] = await Promise.all([startOwnPostgres(), startBroker()]);
    resources.use(postgres);
    resources.use(broker);
    const admin = databaseOf(postgres, 'postgres');
    await queryOnce(admin, 'drop database tallyhook'); // the one that every server of tests has
    await exec(
      String(TEST_PSQL),
      ['--no-psqlrc', '--set=ON_ERROR_STOP=1', '--file=deploy/compose/accounts.sql', admin],
      { cwd: ROOT, env: { ...process.env, ...PASSWORDS } },
    );
    expect(await rolesOf(admin)).toEqual([
      { name: 'tallyhook_migrate', may: [] },
      { name: 'tallyhook_run', may: [] },
    ]);
    expect(await listed(broker, 'list_users')).toBe('tallyhook\t[]');
    expect((await listed(broker, 'list_permissions')).split('\t')).toEqual([
      'tallyhook',
      '^conversion\\.events$',
      '^(conversion\\.events|amq\\.default)$',
      '^$',
    ]);

    const inCompose = { postgres: postgres.server.url, rabbitmq: broker.url };
    expect(await runProcess(['migrate'], { env: environmentOf('migrate', inCompose) })).toMatchObject({
      code: 0,
    });

    const env: Record<string, string> = { HOST: '127.0.0.1', PORT: '0', OPERATOR_PORT: '0' };
    const startOne = async (name: string) => {
      const all = { ...environmentOf(name, inCompose), ...env };
      return resources.use(
        await startReplica({
          databaseUrl: String(all['DATABASE_URL']),
          exchange: 'conversion.events',
          env: all,
        }),
      );
    };
    const replicas = [await startOne('relay-1'), await startOne('relay-2')] as const;
    const proxy = resources.use(await startProxy(replicas));

    await until(
      'the account may have a queue, which the test needs',
      async () => {
        await broker.ctl('set_permissions', 'tallyhook', '.*', '.*', '.*');
        return (await listed(broker, 'list_permissions')).endsWith('.*\t.*') ? true : undefined;
      },
      { limitMs: 60_000 },
    );
    await using bus = await listen('conversion.events', { url: broker.url });
    expect(await deliverFrom('127.0.0.9', proxy.url)).toBe(202);
    await bus.received(1);
    const [sender] = await queryOnce(
      databaseOf(postgres, 'tallyhook'),
      'select remote_address, peer_address from deliveries',
    );
    expect(sender).toEqual({ remote_address: '127.0.0.9', peer_address: '127.0.0.1' });

    replicas[0].kill('SIGTERM');
    for (let count = 0; !replicas[0].hasExited() || count < 20; count += 1)
      expect(await deliverFrom('127.0.0.9', proxy.url)).toBe(202);
    expect(await replicas[0].exited).toEqual({ code: 0, signal: null });
    expect((await fetch(`${proxy.operators}/readyz`)).status).toBe(200);
  },
  patience(120_000),
);

/** With the file where RabbitMQ's image looks for it. The account's name and password are a test's own. */
async function startBroker() {
  const guard = createGuard();
  try {
    const dir = makeThrowAwayFolder(guard);
    copyFileSync(join(ROOT, 'deploy/compose/rabbitmq.config'), join(dir, 'advanced.config'));
    const server = await startRabbitmq({ dir, guard });
    return { ...server, [Symbol.asyncDispose]: guard.close };
  } catch (error) {
    await guard.close();
    throw error;
  }
}

/** On a busy machine rabbitmqctl has been seen to succeed without a word, and without effect. */
function listed({ ctl }: Pick<RabbitmqServer, 'ctl'>, what: string): Promise<string> {
  const ask = async () => (await ctl('-q', '-s', what)).trim() || undefined;
  return until(`rabbitmqctl ${what} says something`, ask, { limitMs: 60_000 });
}

/** Roles that can log in, but for the superuser, and which attributes each has beyond that. */
function rolesOf(url: string) {
  return queryOnce(
    url,
    `select rolname as name, array_remove(array[
       case when rolsuper then 'all' end, case when rolcreatedb then 'databases' end, case when rolcreaterole then 'roles' end,
       case when rolreplication then 'replication' end, case when rolbypassrls then 'rows' end,
       case when exists (select from pg_auth_members where member = pg_roles.oid) then 'as another' end], null) as may
     from pg_roles where rolcanlogin and rolname <> current_user order by 1`,
  );
}

/** As the superuser. */
function databaseOf({ server }: OwnPostgres, name: string): string {
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}

/**
 * Of a service of compose.yaml, with the addresses and the password of the broker that a test has in their place. Without the file
 * of the secret: replicas of tests have theirs.
 */
function environmentOf(
  service: string,
  at: { readonly postgres: string; readonly rabbitmq: string },
): Record<string, string> {
  const { host } = new URL(at.postgres);
  const values: Readonly<Record<string, string>> = PASSWORDS;
  const filled = text
    .replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_all, name: string) => String(values[name]))
    .replaceAll('@postgres:5432', `@${host}`)
    .replaceAll(/amqp:\/\/tallyhook:\S+@rabbitmq:5672/g, at.rabbitmq)
    .replaceAll('10.213.47.2', '127.0.0.1');
  const { services } = parse(filled, { merge: true }) as {
    services: Record<string, { environment: Record<string, string | number> }>;
  };
  const { SIGNING_SECRETS_FILE: _file, ...environment } = services[service]?.environment ?? {};
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
}

type Proxy = AsyncDisposable & { readonly url: string; readonly operators: string };

async function startProxy([first, second]: readonly [Replica, Replica]): Promise<Proxy> {
  const guard = createGuard();
  const log = join(makeThrowAwayFolder(guard), 'haproxy.log');
  const [port, operatorPort] = [await findFreePort(), await findFreePort()];
  const output = openSync(log, 'a', 0o600);
  const proxy = guard.spawn(String(TEST_HAPROXY), ['-f', 'deploy/compose/haproxy.cfg'], {
    cwd: ROOT,
    env: {
      WEBHOOKS: `127.0.0.1:${port}`,
      OPERATORS: `127.0.0.1:${operatorPort}`,
      RELAY_1: new URL(first.intake).host,
      RELAY_2: new URL(second.intake).host,
      RELAY_1_OPERATORS: new URL(first.operators).host,
      RELAY_2_OPERATORS: new URL(second.operators).host,
    },
    ending: { signal: 'SIGTERM', graceMs: 2_000 },
    output,
  });
  closeSync(output);
  await until(
    'HAProxy listens',
    async () => {
      if (proxy.hasExited()) throw new Error(`HAProxy did not start:\n${lastLines(log, 10)}`);
      return (await answers(port)) ? true : undefined;
    },
    { limitMs: 20_000 },
  );
  return {
    url: `http://127.0.0.1:${port}`,
    operators: `http://127.0.0.1:${operatorPort}`,
    [Symbol.asyncDispose]: guard.close,
  };
}

async function deliverFrom(from: string, url: string): Promise<number> {
  const body = JSON.stringify(completed(newJobId()));
  const headers = { 'content-type': 'application/json', 'x-service-signature': sign(body) };
  return (await askFrom(`${url}/webhooks`, { from, method: 'POST', headers, body })).status;
}
