// The units of deploy/systemd: what systemd's own checks say of them, and that they allow the program all that it does. Their command
// lines are run with the secrets laid out as systemd lays them out, but without its sandbox: systemd.test.ts has that.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig, secretVariables } from '../../src/config.ts';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { operators } from '../support/operators.ts';
import { IS_SHORT_RUN } from '../only-in-all.ts';
import { startProgram } from '../support/replica.ts';
import { createRoles } from '../support/roles.ts';
import { completed, deliver, newJobId, SECRET } from '../support/sender.ts';
import { credentialsOf, environmentOf, readUnit, type Unit, unitPath } from '../support/unit-file.ts';
import { until } from '../support/until.ts';

const UNITS = ['tallyhook.service', 'tallyhook-migrate.service'] as const;
const ROOT = new URL('../../', import.meta.url).pathname;
const LIMIT_MS = 30_000;
/** The program's own, after the grace time (src/cli/serve.ts). */
const STOP_SLACK_S = 5;

const analyze = process.env['TEST_SYSTEMD_ANALYZE'];
const strace = process.env['TEST_STRACE'];
/** A container may forbid it. */
const mayTrace =
  Boolean(strace) &&
  spawnSync(strace as string, ['-o', '/dev/null', 'true'], { stdio: 'ignore' }).status === 0;

const service = readUnit('tallyhook.service');
const migration = readUnit('tallyhook-migrate.service');

/** What limits a service: all from the account on. */
const sandboxOf = ({ text }: Unit) =>
  text
    .slice(text.indexOf('DynamicUser='))
    .split('\n')
    .filter((line) => /^\w+=/.test(line) && !line.startsWith('WantedBy='));

function run(program: string, args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  });
  return { status, stdout, stderr };
}

/** A copy of a unit with some text replaced. The Node of the tests stands for the one of the machine, which may have none. */
async function copyOf(folder: TestFolder, name: string, change: (text: string) => string = (text) => text) {
  const text = readUnit(name).text.replace('ExecStart=node ', `ExecStart=${process.execPath} `);
  return folder.write(name, change(text));
}

const verify = (path: string) => run(analyze as string, ['verify', '--man=no', path]);
const secure = (path: string) =>
  run(analyze as string, ['security', '--offline=true', '--threshold=15', '--no-pager', path]);

describe.skipIf(!analyze).each(UNITS)('%s', (name) => {
  test('systemd has nothing to say of it, and something of a misspelt key', async () => {
    await using folder = await createFolder();
    expect(verify(await copyOf(folder, name))).toEqual({ status: 0, stdout: '', stderr: '' });
    // It exits with 0 all the same.
    const misspelt = verify(
      await copyOf(folder, name, (text) => text.replace('ProtectClock=', 'ProtectClocks=')),
    );
    expect(misspelt.stderr).toContain('ProtectClocks');
  });

  test('its exposure is at most 1.5', () => {
    const { status, stdout } = secure(unitPath(name));
    expect({ status, stdout: stdout.trimEnd().split('\n').at(-1) }).toMatchObject({ status: 0 });
  });

  test.each([
    'DynamicUser=yes',
    'CapabilityBoundingSet=',
    'PrivateDevices=yes',
    'RestrictNamespaces=yes',
    'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK',
    'SystemCallFilter=@system-service',
  ])('without %s it would be more', async (line) => {
    await using folder = await createFolder();
    const weakened = await copyOf(folder, name, (text) => text.replace(`${line}\n`, ''));
    expect(readFileSync(weakened, 'utf8')).not.toContain(`${line}\n`);
    expect(secure(weakened).status).toBe(1);
  });
});

test('both units have the same sandbox, and V8 may make machine code in it', () => {
  expect(sandboxOf(migration)).toEqual(sandboxOf(service));
  for (const unit of [service, migration]) {
    expect(unit.all('MemoryDenyWriteExecute')).toEqual([]);
    expect(unit.text).toMatch(/^# No MemoryDenyWriteExecute/m);
  }
});

test('a configuration that cannot be used is not started again, and a drain has the time that it may take', () => {
  expect(service.one('RestartPreventExitStatus')).toBe('78');
  const { shutdown } = loadConfig({
    DATABASE_URL: 'postgres://db',
    AMQP_URL: 'amqp://mq',
    SIGNING_SECRETS: SECRET,
  });
  const seconds = Number(/^(\d+)s$/.exec(service.one('TimeoutStopSec'))?.[1]);
  expect(seconds).toBeGreaterThan((shutdown.delayMs + shutdown.graceMs) / 1_000 + STOP_SLACK_S);
});

const namesOf = (unit: Unit) => Object.keys(environmentOf(unit, '')).toSorted();

test('each unit has the secrets that it needs and no others, all by files', () => {
  expect(namesOf(service)).toEqual([
    'AMQP_URL_FILE',
    'DATABASE_URL_FILE',
    'NODE_ENV',
    'SIGNING_SECRETS_FILE',
  ]);
  expect(namesOf(migration)).toEqual(['DATABASE_URL_FILE', 'MIGRATION_DATABASE_URL_FILE', 'NODE_ENV']);
  for (const unit of [service, migration]) {
    const ids = credentialsOf(unit).map(({ id }) => id);
    const named = Object.entries(environmentOf(unit, '/run')).filter(([name]) => name.endsWith('_FILE'));
    expect(named.map(([, path]) => path).toSorted()).toEqual(ids.map((id) => `/run/${id}`).toSorted());
    const known = secretVariables.map((name) => `${name}_FILE`);
    expect(named.map(([name]) => name).filter((name) => !known.includes(name))).toEqual([]);
  }
});

/** The program that the unit starts, from this repository. */
function commandOf(unit: Unit): string[] {
  const [node, program, ...args] = unit.one('ExecStart').split(' ');
  expect([node, program]).toEqual(['node', '/opt/tallyhook/current/node_modules/tallyhook/bin/tallyhook.js']);
  return [process.execPath, join(ROOT, 'bin/tallyhook.js'), ...args];
}

/** Lays out the secrets as LoadCredential does. @returns the environment of the unit */
async function layOut(folder: TestFolder, unit: Unit, secrets: Readonly<Record<string, string>>) {
  for (const { id } of credentialsOf(unit)) await folder.write(id, secrets[id] as string);
  return environmentOf(unit, folder.path(''));
}

test.skipIf(IS_SHORT_RUN)(
  'the migration’s command line makes the tables with the role of its own',
  async () => {
    await using folder = await createFolder();
    await using roles = await createRoles();
    const secrets = { 'migration-database-url': roles.migrating.url, 'database-url': roles.running.url };
    const [program = '', ...args] = commandOf(migration);
    await using command = startProgram(program, args, { env: await layOut(folder, migration, secrets) });

    expect(await command.exited).toEqual({ code: 0, signal: null });
    const owners = await roles.database.query(
      "select distinct tableowner from pg_tables where schemaname = 'public'",
    );
    expect(owners).toEqual([{ tableowner: roles.migrating.name }]);
  },
);

test.skipIf(IS_SHORT_RUN)(
  'a secret that is no URL ends the command line with 78, and is not shown',
  async () => {
    await using folder = await createFolder();
    const secrets = { 'database-url': 'hunter2-is-no-url', 'amqp-url': amqpUrl(), 'signing-secrets': SECRET };
    const [program = '', ...args] = commandOf(service);
    await using command = startProgram(program, args, { env: await layOut(folder, service, secrets) });

    expect(await command.exited).toEqual({ code: 78, signal: null });
    expect(command.stderr()).toContain('DATABASE_URL must be a URL');
    expect(command.stdout() + command.stderr()).not.toContain('hunter2');
  },
);

/** The system calls and the families of sockets in a trace by `strace -f`. */
function readTrace(path: string) {
  const lines = readFileSync(path, 'utf8');
  const all = (pattern: RegExp) => new Set(Array.from(lines.matchAll(pattern), ([, name = '']) => name));
  return {
    calls: all(/^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)/gm),
    families: all(/ socket(?:pair)?\((AF_\w+)/gm),
  };
}

/** A name of a group of system calls and all that it has, with the groups in it. */
function callsOf(names: readonly string[]): string[] {
  const { stdout } = run(analyze as string, [
    'syscall-filter',
    '--no-pager',
    ...names.filter((name) => name.startsWith('@')),
  ]);
  const found = Array.from(stdout.matchAll(/^ {4}([@\w-]+)$/gm), ([, name = '']) => name);
  const groups = found.filter((name) => name.startsWith('@'));
  return [...names, ...found, ...(groups.length > 0 ? callsOf(groups) : [])].filter(
    (name) => !name.startsWith('@'),
  );
}

/** As systemd reads them in order: a list that begins with ~ takes away. */
function allowedCalls(unit: Unit): Set<string> {
  const allowed = new Set<string>();
  for (const value of unit.all('SystemCallFilter')) {
    const isTakenAway = value.startsWith('~');
    for (const call of callsOf(value.replace('~', '').split(' ')))
      if (isTakenAway) allowed.delete(call);
      else allowed.add(call);
  }
  return allowed;
}

test.skipIf(!analyze || !mayTrace || IS_SHORT_RUN)(
  'the unit allows each system call and each family of sockets that a service’s life needs',
  async () => {
    const exchange = newExchange();
    await using folder = await createFolder();
    await using database = await createTestDatabase();
    await using bus = await listen(exchange);
    const databaseUrl = new URL(database.url);
    databaseUrl.hostname = 'localhost'; // a name, so that it is looked up
    const secrets = { 'database-url': databaseUrl.href, 'amqp-url': amqpUrl(), 'signing-secrets': SECRET };
    const settings = { PORT: '0', OPERATOR_PORT: '0', AMQP_EXCHANGE: exchange, ENVIRONMENT: 'test' };
    // -s 0: no text of the program, which may be a secret. -D: the program stays our child, for signals and its exit code.
    const tracing = ['-D', '-f', '-qq', '-s', '0', '-o', folder.path('trace')];
    const env = { ...(await layOut(folder, service, secrets)), ...settings, NODE_DISABLE_COMPILE_CACHE: '1' };
    await using command = startProgram(strace as string, [...tracing, ...commandOf(service)], { env });
    const logged = (msg: string) =>
      until(
        `"${msg}" in the log`,
        () =>
          command
            .stdout()
            .split('\n')
            .find((line) => line.includes(`"msg":"${msg}"`)),
        { limitMs: LIMIT_MS },
      );
    const { port, operatorPort } = JSON.parse(await logged('listening')) as Record<string, number>;
    const relay = { operators: `http://127.0.0.1:${operatorPort}`, database };

    const jobId = newJobId();
    expect(await deliver(`http://127.0.0.1:${port}/webhooks`, completed(jobId))).toMatchObject({
      status: 202,
    });
    await bus.received(1, LIMIT_MS);
    expect(await (await operators(relay)).get(`/jobs?job_id=${jobId}`)).toMatchObject({ status: 200 });
    command.child.kill('SIGHUP');
    await logged('sources loaded');
    command.child.kill('SIGTERM');
    expect(await command.exited).toEqual({ code: 0, signal: null });

    const { calls, families } = readTrace(folder.path('trace'));
    expect(calls).toContain('epoll_pwait');
    const allowed = allowedCalls(service);
    expect([...calls].filter((call) => !allowed.has(call))).toEqual([]);
    const allowedFamilies = service.one('RestrictAddressFamilies').split(' ');
    expect([...families].filter((family) => !allowedFamilies.includes(family))).toEqual([]);
  },
);
