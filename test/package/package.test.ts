// The package that `npm run pack` makes, installed in an empty folder: what is in it, and what works from there.

import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../scripts/relay.ts';
import { checkSchema, migrate } from '../../src/ledger/schema/migrate.ts';
import { amqpUrl, listen, newExchange } from '../support/bus.ts';
import { createTestDatabase } from '../support/database.ts';
import { newToken } from '../support/operators.ts';
import { patience } from '../support/patience.ts';
import { runProcess, startProcess, startReplica } from '../support/replica.ts';
import { SECRET } from '../support/sender.ts';
import { until } from '../support/until.ts';
import { addNodeTypes, type Installed, installPackage, runProgram } from './installed.ts';

/** npm downloads on a busy machine. */
const INSTALL_MS = patience(180_000);
const LIMIT_MS = 20_000;
const MODULES = ['subscriber', 'events', 'signature', 'operators', 'testing'];

const oldNode = process.env['TEST_OLD_NODE'];

let installed: Installed;
beforeAll(async () => {
  installed = await installPackage();
  return () => installed[Symbol.asyncDispose]();
}, INSTALL_MS);

const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;

/** Runs a file of this text in the project. @throws Error with its output if it fails */
async function runFile(name: string, text: string, node = ''): Promise<string> {
  await writeFile(join(installed.folder, name), text);
  const { code, stdout, stderr } = await runProgram(node, [name], installed.folder);
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${stdout}${stderr}`);
  return stdout;
}

describe('the package', () => {
  test('has every file that the program needs, as plain JavaScript, and nothing of the workshop', async () => {
    const { stdout } = await runProgram('tar', ['-tzf', installed.tgz], installed.folder);
    const files = new Set(
      stdout
        .trim()
        .split('\n')
        .map((path) => path.slice('package/'.length)),
    );
    const needed = ['src/**/*', 'migrations/*', 'contracts/**/*']
      .flatMap((pattern) => globSync(pattern, { cwd: ROOT, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
      .filter((path) => !path.startsWith('contracts/types/released/'))
      .map((path) => path.replace(/\.ts$/, '.js'));

    expect(
      [...needed, 'LICENSE', 'README.md', 'bin/tallyhook.js'].filter((path) => !files.has(path)),
    ).toEqual([]);
    const others = [...files].filter((path) => /^(?:test|bench|scripts|node_modules|\.)/.test(path));
    expect(others).toEqual([]);
    expect([...files].filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))).toEqual([]);
    expect(files.size).toBeGreaterThan(400);
  });

  test('states what it exports, which Node and packages it needs, and nothing that is of use here alone', async () => {
    const [own, packed] = await Promise.all([
      readJson(join(ROOT, 'package.json')),
      readJson(join(installed.folder, 'node_modules/tallyhook/package.json')),
    ]);
    const { scripts, devDependencies, allowScripts, exports, ...kept } = own;
    const { exports: packedExports, ...others } = packed;
    expect([scripts, devDependencies, allowScripts, exports]).not.toContain(undefined);
    expect(others).toEqual({ ...kept, private: true });
    const expected = Object.fromEntries(
      Object.entries(exports as Record<string, string>).map(([name, path]) => [
        name,
        path.endsWith('.ts')
          ? { types: path.replace(/\.ts$/, '.d.ts'), default: path.replace(/\.ts$/, '.js') }
          : path,
      ]),
    );
    expect(packedExports).toEqual(expected);
  });

  test('is printed with its size and what it holds, and is refused to npm publish in the repository', async () => {
    expect(installed.printed).toMatch(/tallyhook-[\d.]+\.tgz {2}\d{3,4} kB\n/);
    expect(installed.printed).toMatch(/^ {2}migrations\/ {2}\d+ files$/m);
    const { code, stderr } = await runProgram('npm', ['publish', '--dry-run', '--prefix', ROOT], ROOT);
    expect(code).not.toBe(0);
    expect(stderr).toContain('Use: npm run pack');
  });

  test('is refused to npm publish itself, since its name is nobody’s', async () => {
    const asked: string[] = [];
    const registry = createServer((request, response) => {
      asked.push(String(request.method));
      response.writeHead(404).end('{}');
    }).listen(0, '127.0.0.1');
    await once(registry, 'listening');
    const address = `//127.0.0.1:${(registry.address() as AddressInfo).port}/`;
    // A dry run asks for less than the deed: here npm could publish.
    const to = [`--registry=http:${address}`, `--${address}:_authToken=a-token-of-nobody`];
    const { code, stderr } = await runProgram('npm', ['publish', installed.tgz, ...to], installed.folder);
    registry.close();
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('EPRIVATE') });
    expect(asked).not.toContain('PUT');
  });

  test('has a bill of materials with each package that it needs and none of the others', async () => {
    const { bomFormat, metadata, components } = (await readJson(installed.bill)) as {
      bomFormat: string;
      metadata: { component: { name: string; version: string } };
      components: { name: string; version: string; purl: string; hashes: unknown[] }[];
    };
    const own = await readJson(join(ROOT, 'package.json'));
    expect(bomFormat).toBe('CycloneDX');
    expect(metadata.component).toMatchObject({ name: 'tallyhook', version: installed.version });
    const found = new Set(components.map(({ name, version }) => `${name}@${version}`));
    const named = (field: string) =>
      Object.entries(own[field] as object).map(([name, version]) => `${name}@${version}`);
    expect(named('dependencies').filter((name) => !found.has(name))).toEqual([]);
    expect(named('devDependencies').filter((name) => found.has(name))).toEqual([]);
    expect(components.every(({ purl, hashes }) => purl.startsWith('pkg:npm/') && hashes.length > 0)).toBe(
      true,
    );
  });
});

describe('the command', () => {
  test('is where the documents let a shell find it', async () => {
    const page = await readFile(join(ROOT, 'docs/package.md'), 'utf8');
    const [, lines = ''] = /^```sh\n(export PATH=.*?)^```/ms.exec(page) ?? [];
    const script = `${lines}\ntallyhook --version; command -v tallyhook`;
    const { stdout } = await runProgram('sh', ['-c', script], installed.folder);
    const command = join(installed.folder, 'node_modules/.bin/tallyhook');
    expect(stdout.trimEnd().split('\n').slice(-2)).toEqual([installed.version, command]);
  });

  test('speaks of no npm start, which the package has not', async () => {
    const { command: main } = installed;
    for (const args of [['--help'], ['verify', '--help'], ['sandbox', '--help'], ['send'], ['jobs']]) {
      const { stdout, stderr } = await runProcess(args, { main, env: { PORT: '1' } });
      expect(stdout + stderr).not.toMatch(/npm start|\.local\/env/);
    }
  });

  test('migrate makes the schema that the repository makes, and each takes up where the other stopped', async () => {
    const { command: main } = installed;
    await using fresh = await createTestDatabase({ empty: true });
    const { stdout } = await runProcess(['migrate'], { main, env: { DATABASE_URL: fresh.url } });
    expect(stdout).toMatch(/^migrated: 0001-first-release, 0002-watch, 0003-clusters$/m);
    await checkSchema(fresh.url);
    expect(await migrate(fresh.url)).toEqual([]);

    await using ours = await createTestDatabase();
    expect(await runProcess(['migrate'], { main, env: { DATABASE_URL: ours.url } })).toMatchObject({
      code: 0,
      stdout: 'the schema is up to date\n',
    });
  });

  test('serve takes what send signs, tail prints it, and the console and the documents are there', async () => {
    const { command: main } = installed;
    const exchange = newExchange();
    await using bus = await listen(exchange);
    await using database = await createTestDatabase();
    await using relay = await startReplica({ databaseUrl: database.url, exchange, main });
    const env = { AMQP_URL: amqpUrl(), AMQP_EXCHANGE: exchange, SIGNING_SECRETS: SECRET };
    await using tail = startProcess(['tail'], { main, env });
    let sent = 0;

    // The queue of `tail` is bound at some time.
    await until(
      'tail printed an event',
      async () => {
        const job = `job_${(sent += 1)}`;
        const send = await runProcess(['send', '--job', job, '--url', relay.webhooks], { main, env });
        expect(send).toMatchObject({ code: 0, stdout: expect.stringContaining('202 accepted') });
        await bus.received(sent);
        return /default:job_\d+:completed/.exec(tail.stdout())?.[0];
      },
      { limitMs: LIMIT_MS },
    );

    const statuses = ['/console/sign-in', '/api/v1/openapi.json', '/livez', '/readyz'].map(
      async (path) => (await fetch(`${relay.operators}${path}`)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 200, 200, 200]);
    tail.child.kill('SIGTERM');
    await tail.exited;
    relay.kill('SIGTERM');
    expect(await relay.exited).toMatchObject({ code: 0 });
  });

  test('sandbox runs, with its dashboard', async () => {
    const args = ['sandbox', '--port', '0', '--data', ':memory:', '--engine', 'simulated'];
    await using sandbox = startProcess(args, { main: installed.command, cwd: installed.folder });
    const dashboard = await until(
      'the sandbox is ready',
      () => /^ *dashboard +(\S+)/m.exec(sandbox.stdout() + sandbox.stderr())?.[1],
      { limitMs: LIMIT_MS },
    );
    expect((await fetch(dashboard)).status).toBe(200);
    sandbox.child.kill('SIGTERM');
    expect(await sandbox.exited).toMatchObject({ code: 0 });
  });

  test.skipIf(!oldNode)('an older Node gets one sentence, and no stack trace', async () => {
    const { code, stdout, stderr } = await runProgram(
      String(oldNode),
      [installed.command, 'serve'],
      installed.folder,
    );
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(/^tallyhook needs Node 24 or newer, and this is Node 22\.[\d.]+ \([^\n]+\)\.\n$/);
  });
});

/** What each module exports, and which packages it loads, as a program that prints both as JSON. */
const look = (load: string) => `
const { registerHooks } = process.getBuiltinModule('node:module');
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
const found = ${load};
const packages = urls.map((url) => /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]).filter(Boolean);
console.log(JSON.stringify({ exports: Object.keys(found), packages: [...new Set(packages)].sort() }));
`;

const LOADED: Readonly<Record<string, readonly string[]>> = {
  subscriber: ['amqplib', 'tallyhook', 'zod'],
  events: ['tallyhook', 'zod'],
  signature: ['tallyhook'],
  operators: ['eventsource-parser', 'tallyhook', 'zod'],
  testing: ['tallyhook', 'zod'],
};

const EXPORTS: Readonly<Record<string, readonly string[]>> = {
  events: [
    'CLOUD_EVENT_TYPE',
    'KINDS',
    'dataSchemas',
    'envelopeSchema',
    'isCompleted',
    'isFailed',
    'isProgress',
    'parseEvent',
  ],
  signature: ['SIGNATURE_HEADER', 'explain', 'sign', 'verify'],
  operators: ['ApiAnswerError', 'InvalidAnswerError', 'NoAnswerError', 'createOperatorsClient'],
  testing: [
    'deliver',
    'messageOf',
    'sampleDelivery',
    'sampleEvent',
    'sampleNotification',
    'signedNotification',
  ],
};

const NODES = [
  { name: 'Node 24', node: process.execPath },
  { name: 'the oldest Node that package.json allows', node: oldNode },
];

describe.for(NODES)('on $name', ({ node }) => {
  test.skipIf(!node).for(MODULES)(
    'tallyhook/%s is imported and required, and loads only what it needs',
    async (name) => {
      const imported = await runFile(`${name}.mjs`, look(`await import('tallyhook/${name}')`), node);
      const required = await runFile(`${name}.cjs`, look(`require('tallyhook/${name}')`), node);
      const { exports, packages } = JSON.parse(imported) as { exports: string[]; packages: string[] };
      expect(packages.filter((found) => !LOADED[name]?.includes(found))).toEqual([]);
      expect(JSON.parse(required)).toMatchObject({ packages });
      expect(exports.toSorted()).toEqual(EXPORTS[name] ?? exports.toSorted());
      expect(exports.length).toBeGreaterThan(0);
    },
  );

  test.skipIf(!node)('an event is signed, checked and read', async () => {
    const printed = await runFile(
      'use.mjs',
      `import { verify } from 'tallyhook/signature';
      import { isFailed, parseEvent } from 'tallyhook/events';
      import { messageOf, sampleEvent, signedNotification } from 'tallyhook/testing';
      const { body, headers } = signedNotification({ kind: 'failed', secret: 'of-this-test' });
      const parsed = parseEvent(messageOf(sampleEvent({ kind: 'failed' })).content);
      console.log(verify(body, headers['x-service-signature'], ['older', 'of-this-test']), isFailed(parsed.event));`,
      node,
    );
    expect(printed).toBe('true true\n');
  });

  test.skipIf(!node)('a subscriber gets an event', async () => {
    const printed = await runFile(
      'subscribe.mjs',
      `import { connect } from 'amqplib';
      import { createSubscriber } from 'tallyhook/subscriber';
      import { messageOf, sampleEvent } from 'tallyhook/testing';
      const [url, exchange] = [${JSON.stringify(amqpUrl())}, ${JSON.stringify(newExchange())}];
      const { promise, resolve } = Promise.withResolvers();
      const queue = { temporary: 'test.package' };
      const on = { completed: (event) => resolve(event.data.job_id) };
      const subscriber = await createSubscriber({ url, exchange, declareExchange: true, queue, on });
      const connection = await connect(url);
      const channel = await connection.createChannel();
      const { routingKey, content, properties } = messageOf(sampleEvent({ kind: 'completed' }));
      channel.publish(exchange, routingKey, content, properties);
      console.log(await promise);
      await subscriber.stop();
      await channel.deleteExchange(exchange);
      await connection.close();`,
      node,
    );
    expect(printed).toBe('job_sample\n');
  });
});

/** As strict as can be, and with our declarations checked, too. */
const STRICT = {
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  noEmit: true,
  target: 'es2024',
  lib: ['es2024'],
  types: ['node'],
};

/** The programs on the page, as they stand there. */
const examples = async () => {
  const page = await readFile(join(ROOT, 'docs/package.md'), 'utf8');
  return Array.from(page.matchAll(/^```ts\n(.*?)^```/gms), ([, code = '']) => code);
};

/** @returns what the compiler says */
async function check(name: string, options: object, files: readonly string[]): Promise<string> {
  await addNodeTypes(installed);
  await writeFile(
    join(installed.folder, name),
    JSON.stringify({ compilerOptions: { ...STRICT, ...options }, files }),
  );
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  return (await runProgram(tsc, ['-p', name, '--pretty', 'false'], installed.folder)).stdout;
}

/** The types are those of the kind, not `any`. */
const TYPED = `
import type { ConversionEvent } from 'tallyhook/events';
export const cost = (event: ConversionEvent): number =>
  event.type === 'conversion.job.completed' ? event.data.cost_cents : 0;
// @ts-expect-error -- a failed job has no costs
export const wrong: number = testing.sampleEvent({ kind: 'failed' }).data.cost_cents;
// @ts-expect-error -- misspelt
testing.sampleEvent({ kind: 'failed', fields: { eror_code: 'TIMEOUT' } });
// @ts-expect-error -- misspelt
void testing.deliver({ complete: () => {} }, testing.sampleEvent({ kind: 'completed' }));
// @ts-expect-error -- misspelt
testing.sampleDelivery({ redeliverd: true });
// @ts-expect-error -- there is no such list
operators.createOperatorsClient({ url: '', token: '' }).each('nothing');
// @ts-expect-error -- there is no such kind of event
void subscriber.createSubscriber({ url: '', queue: '', on: { ended: () => {} } });`;

describe('a TypeScript project', () => {
  test('compiles the page’s examples, and CommonJS that requires each module', async () => {
    const files = await Promise.all(
      (await examples()).map(async (code, index) => {
        await writeFile(join(installed.folder, `example-${index}.ts`), `${code}\nexport {};\n`);
        return `example-${index}.ts`;
      }),
    );
    expect(files.length).toBe(6);
    const required = MODULES.map((name) => `import * as ${name} from 'tallyhook/${name}';\nvoid ${name};`);
    await writeFile(join(installed.folder, 'required.cts'), [...required, TYPED].join('\n'));
    const bundler = { module: 'esnext', moduleResolution: 'bundler', resolveJsonModule: true };
    expect(await check('nodenext.json', { module: 'nodenext' }, [...files, 'required.cts'])).toBe('');
    expect(await check('bundler.json', bundler, files)).toBe('');
  });

  test('runs the examples of docs/package.md as they stand there', async () => {
    await using database = await createTestDatabase();
    await using relay = await startReplica({ databaseUrl: database.url, main: installed.command });
    const { value } = await newToken(database, {});
    const printed: string[] = [];
    for (const [index, code] of (await examples()).entries()) {
      // It runs until it is stopped, and consumes a queue of everybody's.
      if (code.includes('tallyhook/subscriber')) continue;
      await writeFile(join(installed.folder, `run-${index}.ts`), code);
      const env = { TALLYHOOK_URL: relay.operators, TALLYHOOK_TOKEN: value };
      await using command = startProcess([], {
        main: join(installed.folder, `run-${index}.ts`),
        env,
        cwd: installed.folder,
      });
      expect({ example: code, ...(await command.exited), stderr: command.stderr() }).toMatchObject({
        code: 0,
        stderr: '',
      });
      printed.push(command.stdout());
    }
    expect(printed).toContain('404 not_found\n');
    expect(existsSync(join(installed.folder, 'node_modules/tallyhook/.local'))).toBe(false);
  });
});
