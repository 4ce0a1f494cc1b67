// TLS on all sides with a CA of one's own, from docs/tls.md alone: its commands and its code run as they stand there, with a real
// Postgres and a real RabbitMQ. Then each fault with the broker.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAIN } from '../../scripts/program.ts';
import { createSubscriber } from '../../src/subscriber/index.ts';
import { type Said, relaySays, subscriberSays } from '../support/broker-says.ts';
import { newExchange } from '../support/bus.ts';
import {
  type Authority,
  type Certificate,
  createAuthority,
  selfSignedCertificate,
} from '../support/certificate.ts';
import { commandsUnder } from '../support/deploy-page.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';
import { startFront } from '../support/front.ts';
import { newToken } from '../support/operators.ts';
import { createTestPublisher } from '../support/relay.ts';
import { type RunningProcess, startProcess, startProgram } from '../support/replica.ts';
import { SECRET } from '../support/sender.ts';
import { startTlsPostgres } from '../support/tls-postgres.ts';
import { startTlsRabbitmq, type TlsRabbitmq } from '../support/tls-rabbitmq.ts';
import { saidBy, sentencesFor } from '../support/tls-faults.ts';
import { until } from '../support/until.ts';

const LIMIT_MS = 30_000;
const HAS_OPENSSL = spawnSync('openssl', ['version']).status === 0;

const COMMANDS = "Commands and the operators' client";

const block = (heading: string, language: string) => commandsUnder(heading, language, 'tls.md').join('');

const authority = createAuthority();
/** Not for 127.0.0.1. */
const forLocalhost = (from: Authority = authority) => from.issue({ hosts: ['localhost'] });

let folder: TestFolder;
let broker: TlsRabbitmq;
beforeAll(async () => {
  folder = await createFolder();
  broker = await startTlsRabbitmq(forLocalhost(), authority.cert);
});
afterAll(async () => {
  await broker?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

type Variables = Readonly<Record<string, string>>;

/** In the folder, as a reader types it. A command that lasts takes the shell's place, so that signals reach it. */
const PRELUDE = `set -euo pipefail
tallyhook() { if [ "$1" = serve ]; then exec "$NODE" "$MAIN" "$@"; else "$NODE" "$MAIN" "$@"; fi; }
`;

const inShell = (script: string, env: Variables): RunningProcess =>
  startProgram('bash', ['-c', PRELUDE + script], {
    cwd: folder.path('.'),
    env: { NODE: process.execPath, MAIN, ...env },
  });

async function paste(script: string, env: Variables): Promise<{ code: number | null; output: string }> {
  await using shell = inShell(script, env);
  const { code } = await shell.exited;
  return { code, output: shell.stdout() + shell.stderr() };
}

/** Of the page, with the packages where they are here. */
async function program(name: string, heading: string, env: Variables): Promise<RunningProcess> {
  const code = block(heading, 'js').replaceAll(
    /from '([^':]+)'/g,
    (_, from: string) => `from '${import.meta.resolve(from)}'`,
  );
  return startProgram(process.execPath, [await folder.write(name, code)], { cwd: folder.path('.'), env });
}

const untilSaid = (process: RunningProcess, text: string) =>
  until(
    `it says ${text}`,
    () => {
      const said = process.stdout() + process.stderr();
      if (said.includes(text)) return said;
      throw new Error(said);
    },
    { limitMs: LIMIT_MS },
  );

async function isDeclared(queue: string): Promise<true | undefined> {
  const connection = await connect(broker.server.url);
  connection.on('error', () => {});
  const channel = await connection.createChannel();
  channel.on('error', () => {}); // a missing queue closes it
  try {
    return (await channel.checkQueue(queue)) && true;
  } finally {
    await connection.close();
  }
}

const untrusted = ({ port }: { readonly port: number }) =>
  `the CA that signed the certificate of localhost:${port} is not trusted here: name the right one by NODE_EXTRA_CA_CERTS`;

const fileOf = (name: string) => readFileSync(folder.path(name), 'utf8');
const pairOf = (name: string): Certificate => ({ cert: fileOf(`${name}.pem`), key: fileOf(`${name}.key`) });

describe.skipIf(!HAS_OPENSSL)('the page', () => {
  test('leads from a CA to a service, a subscriber and commands that use it, and to renewed certificates', async () => {
    expect(await paste(block('A CA of your own', 'sh'), {})).toMatchObject({ code: 0 });
    const ca = fileOf('ca.pem');
    const [hba = ''] = commandsUnder('Postgres', 'ini', 'tls.md').slice(1);
    await using postgres = await startTlsPostgres({ ca, certificate: pairOf('postgres'), hba });
    await broker.show(pairOf('rabbitmq'), ca);

    const service: Variables = {
      DATABASE_URL: postgres.url,
      AMQP_URL: broker.url,
      HOST: '127.0.0.1',
      PORT: '0',
      OPERATOR_PORT: '0',
      ENVIRONMENT: 'test',
      SIGNING_SECRETS: SECRET,
    };
    const database = block('Postgres', 'sh');
    expect(await paste(database, service)).toMatchObject({ code: 0 });
    const { output: url } = await paste(`tallyhook() { :; }; ${database} echo "$DATABASE_URL"`, service);
    const { value: token } = await newToken({ url: url.trim() });

    await using serving = inShell(database + block('RabbitMQ', 'sh'), service);
    const said = await untilSaid(serving, 'broker connected');
    const [, port, operatorPort] = /"port":(\d+),"operatorPort":(\d+)/.exec(said) ?? [];

    await using intake = await startFront(`http://127.0.0.1:${port}`, { certificate: pairOf('proxy') });
    await using operators = await startFront(`http://127.0.0.1:${operatorPort}`, {
      certificate: pairOf('proxy'),
    });
    const reader: Variables = {
      TALLYHOOK_URL: `https://localhost:${operators.port}`,
      TALLYHOOK_TOKEN: token,
      WEBHOOKS: `https://localhost:${intake.port}/webhooks`,
      SIGNING_SECRETS: SECRET,
    };
    await using billing = await program('billing.mjs', 'RabbitMQ', { AMQP_URL: broker.url });
    const files = { ca: 'ca.pem', cert: 'tallyhook.pem', key: 'tallyhook.key' };
    await using tail = startProcess(['tail'], {
      env: {
        AMQP_URL: broker.url,
        AMQP_CA_FILE: folder.path(files.ca),
        AMQP_CERT_FILE: folder.path(files.cert),
        AMQP_KEY_FILE: folder.path(files.key),
      },
    });
    await untilSaid(tail, 'listening on queue');
    await until('the queue of the subscriber is there', () => isDeclared('billing'), { limitMs: LIMIT_MS });
    const used = await paste(block(COMMANDS, 'sh'), reader);
    expect(used).toMatchObject({ code: 0 });
    expect(used.output).toMatch(/202 accepted.*"check":"tls","result":"ok"/s);
    await untilSaid(billing, 'bill default:');
    await untilSaid(tail, '"specversion"');

    await using client = await program('client.mjs', COMMANDS, reader);
    await client.exited;
    expect(client.stdout() + client.stderr()).toMatch(/^job_\w+\n$/);

    // Node's other ways to name a CA, and none.
    const bySystem = { NODE_USE_SYSTEM_CA: '1', SSL_CERT_FILE: folder.path('ca.pem') };
    expect(await paste('tallyhook replicas', { ...reader, ...bySystem })).toMatchObject({ code: 0 });
    const untrusting = await paste('tallyhook send --url "$WEBHOOKS" || tallyhook replicas', reader);
    expect(untrusting.code).toBe(1);
    expect(untrusting.output).toContain(`/webhooks: ${untrusted(intake)}`);
    expect(untrusting.output).toContain(`tls_failed: ${untrusted(operators)}`);

    // Another CA, as the page tells to change one: nothing is restarted.
    await folder.write('ca.pem', ca + authority.cert);
    await broker.show(forLocalhost(), ca + authority.cert);
    await broker.ctl('close_all_connections', 'a renewed certificate');
    await untilSaid(serving, 'broker connection lost');
    await paste(
      'tallyhook send failed --job renewed --url "$WEBHOOKS"; tallyhook send --job renewed-too --url "$WEBHOOKS"',
      {
        ...reader,
        NODE_EXTRA_CA_CERTS: folder.path('ca.pem'),
      },
    );
    await untilSaid(billing, 'bill default:renewed-too:completed');
    expect(serving.child.exitCode).toBeNull();
    expect(serving.stdout() + serving.stderr()).not.toMatch(/PRIVATE KEY|:[^:@/]+@localhost/);
  });
});

describe('a broker', () => {
  let trusted: { ca: string; cert: string; key: string };
  beforeAll(async () => {
    const { cert, key } = authority.issue({ name: 'tallyhook', hosts: [] });
    trusted = {
      ca: await folder.write('trusted.pem', authority.cert),
      cert: await folder.write('client.pem', cert),
      key: await folder.write('client.key', key),
    };
    await broker.show(forLocalhost(), authority.cert);
  });

  /** Of the relay and of a subscriber, who say the same. */
  async function faultOf(
    url: string,
    files: Partial<typeof trusted> | undefined = trusted,
    code = 'tls_failed',
  ): Promise<string> {
    const relay: Said = await relaySays(url, files);
    expect(relay.code).toBe(code);
    expect(await subscriberSays(url, url.startsWith('amqps:') ? files : undefined)).toEqual(relay);
    expect(relay.message).not.toContain(new URL(url).password);
    return relay.message;
  }

  async function showing(certificate: Certificate): Promise<string> {
    await broker.show(certificate, authority.cert);
    return faultOf(broker.url);
  }

  test('says each fault in its sentence, to the relay and to a subscriber', async () => {
    const { port } = new URL(broker.url);
    const stranger = createAuthority('a stranger');
    const strange = stranger.issue({ hosts: [] });
    const said = await saidBy({
      "the server's certificate has expired": () => showing(authority.issue({ days: -1 })),
      'it is for another host': () => showing(authority.issue({ hosts: ['elsewhere.example'] })),
      'it is signed by itself': () => showing(selfSignedCertificate()),
      'it is of another CA, or no CA is named': async () => {
        await broker.show(forLocalhost(), authority.cert);
        return faultOf(broker.url, { ...trusted, ca: await folder.write('strange-ca.pem', stranger.cert) });
      },
      'the server wants a certificate of its clients': () => faultOf(broker.url, { ca: trusted.ca }),
      'it does not trust that certificate': async () =>
        faultOf(broker.url, {
          ca: trusted.ca,
          cert: await folder.write('strange.pem', strange.cert),
          key: await folder.write('strange.key', strange.key),
        }),
      'only the client uses TLS': () =>
        faultOf(broker.server.url.replace('amqp:', 'amqps:'), trusted, 'wrong_port'),
      'only the server uses TLS': () =>
        faultOf(broker.server.url.replace(/:\d+$/, `:${port}`), undefined, 'wrong_port'),
      'a file is gone': () => faultOf(broker.url, { ...trusted, ca: folder.path('gone.pem') }),
    });
    expect(said).toEqual(sentencesFor('RabbitMQ'));
  });

  test('lets in who has all of it, also with texts in place of a function', async () => {
    await broker.show(forLocalhost(), authority.cert);
    const publisher = createTestPublisher({
      exchange: newExchange(),
      url: broker.url,
      certificates: trusted,
    });
    await until('the relay is connected', () => publisher.isReady() || undefined, { limitMs: LIMIT_MS });
    await publisher.close();
    const { cert, key } = authority.issue({ hosts: [] });
    await using subscriber = await createSubscriber({
      url: broker.url,
      tls: { ca: [authority.cert], cert, key: Buffer.from(key) },
      queue: { temporary: 'trial.' },
      declareExchange: true,
      on: { completed: () => {} },
    });
    expect(subscriber.state().connected).toBe(true);
  });
});
