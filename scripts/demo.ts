// `npm run demo`: sends a job's whole life to a relay of its own over real HTTP, in a throw-away folder, and
// shows what was answered and what a real subscriber received; then lets the sandbox convert a real clip whose
// webhooks go to the relay. Fails if anything differs from what is promised.

import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'amqplib';
import { placeOf } from '../src/sandbox/command/place.ts';
import { differences, type Received } from './demo/compare.ts';
import { convertClips } from './demo/conversion.ts';
import { receive } from './demo/receive.ts';
import { type Answer, send, story, type Step } from './demo/story.ts';
import { endOnRequest } from './ending.ts';
import { forgetLocalRun, given } from './local-env.ts';
import { complain, complainOfUsage, createProgress, explain, paint, type Progress, say } from './output.ts';
import { ROOT, startRelay } from './relay.ts';
import { startSandbox } from './sandbox.ts';
import { chooseEngine } from './services/find-ffmpeg.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import { createGuard, type Guard } from './services/guard.ts';
import { findFreePort } from './services/ports.ts';
import { startPostgres } from './services/postgres.ts';
import { startRabbitmq } from './services/rabbitmq.ts';

const NAMED_SOURCE = 'team-a';
const DEFAULT_EXCHANGE = 'conversion.events';
const RECEIVE_TIMEOUT_MS = 10_000;
/** Waits for messages that must not come: a second copy would follow the first at once. */
const QUIET_MS = 500;
const POLL_MS = 20;

type Stage = {
  readonly env: NodeJS.ProcessEnv;
  readonly webhooks: string;
  readonly amqpUrl: string;
  readonly exchange: string;
  readonly secrets: Record<string, string>;
};

async function main(args: string[]): Promise<number> {
  if (args.length > 0) {
    complainOfUsage('npm run demo', `unexpected argument "${args[0]}"`);
    return 2;
  }
  forgetLocalRun(join(ROOT, '.local', 'env'));
  const guard = createGuard();
  const ending = endOnRequest(guard);
  try {
    return await run(guard);
  } catch (error) {
    if (!ending.isAsked()) complain(`\n${explain(error)}`);
    return ending.exitCode() ?? 1;
  } finally {
    await guard.close();
  }
}

async function run(guard: Guard): Promise<number> {
  const startedMs = performance.now();
  const progress = createProgress();
  const folder = makeThrowAwayFolder(guard);
  const stage = await setStage(guard, folder, progress);
  const logFile = join(folder, 'tallyhook.log');
  const relay = await progress.during('relay', () => startRelay(guard, { env: stage.env, logFile }));
  const engine = await chooseEngine({ guard, logFile: join(folder, 'install.log'), log: progress.note });
  const sandbox = await progress.during('sandbox', async () =>
    startSandbox(guard, {
      place: placeOf(join(folder, 'sandbox', 'sandbox.db')),
      logFile: join(folder, 'sandbox.log'),
      args: ['--engine', engine],
      signingSecret: stage.secrets['default'] ?? '',
      webhookUrl: stage.webhooks,
      port: await findFreePort(),
      filesPort: await findFreePort(),
    }),
  );
  const servicesMs = performance.now() - startedMs;

  const steps = story(stage.secrets, NAMED_SOURCE);
  const { answers, received } = await play(steps, stage);
  printAnswers(steps, answers);
  printReceived(received);
  const wrong = [...differences(steps, answers, received), ...(await convertClips(sandbox, stage))];
  if (stage.exchange !== DEFAULT_EXCHANGE) await removeExchange(stage.amqpUrl, stage.exchange);
  const totalMs = performance.now() - startedMs;
  if (wrong.length === 0) {
    say(paint('green', '\nAll as promised.'));
    say(
      `${steps.length} deliveries, ${received.length} events; ${inSeconds(totalMs)}, of which ${inSeconds(servicesMs)} to start`,
    );
    return 0;
  }
  complain(paint('red', `\n${wrong.length} differ from what is promised:`));
  for (const line of wrong) complain(`  ${line}`);
  complain(`\nThe end of the relay’s log:\n${relay.lastLog()}`);
  complain(`\nThe end of the sandbox’s log:\n${sandbox.lastLog()}`);
  return 1;
}

/** The services and the relay's configuration. On a broker that AMQP_URL names, the exchange is one of our own. */
async function setStage(guard: Guard, folder: string, { during, note }: Progress): Promise<Stage> {
  const outside = given('AMQP_URL');
  const [postgres, amqpUrl] = await Promise.all([
    during('Postgres', () => startPostgres({ dir: join(folder, 'postgres'), guard, log: note })),
    outside ??
      during('RabbitMQ', async () => {
        const rabbitmq = await startRabbitmq({ dir: join(folder, 'rabbitmq'), guard, log: note });
        return rabbitmq.url;
      }),
  ]);
  const exchange = outside ? `tallyhook.demo.${randomBytes(4).toString('hex')}` : DEFAULT_EXCHANGE;
  const secrets = {
    default: randomBytes(32).toString('hex'),
    [NAMED_SOURCE]: randomBytes(32).toString('hex'),
  };
  const sourcesFile = join(folder, 'sources.json');
  const sources = { [NAMED_SOURCE]: { secrets: [secrets[NAMED_SOURCE]] } };
  writeFileSync(sourcesFile, JSON.stringify(sources), { mode: 0o600 });
  const [port, operatorPort] = [await findFreePort(), await findFreePort()];
  const env = {
    // Nothing of the caller's environment: this relay has its defaults.
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    PORT: String(port),
    OPERATOR_PORT: String(operatorPort),
    DATABASE_URL: postgres.url,
    AMQP_URL: amqpUrl,
    AMQP_EXCHANGE: exchange,
    SIGNING_SECRETS: secrets.default,
    SOURCES_FILE: sourcesFile,
    MIGRATE_ON_START: 'true',
  };
  return { env, webhooks: `http://127.0.0.1:${port}/webhooks`, amqpUrl, exchange, secrets };
}

/** Sends one after another, since the demo also checks the order of events. */
async function play(
  steps: readonly Step[],
  { webhooks, amqpUrl, exchange }: Stage,
): Promise<{ answers: Answer[]; received: Received[] }> {
  const received: Received[] = [];
  const subscriber = await receive({ amqpUrl, exchange }, (event) => received.push(event));
  try {
    const answers: Answer[] = [];
    for (const step of steps) answers.push(await send(webhooks, step));
    const wanted = steps.filter((step) => step.event !== undefined).length;
    const deadlineMs = performance.now() + RECEIVE_TIMEOUT_MS;
    while (received.length < wanted && performance.now() < deadlineMs) await sleep(POLL_MS);
    await sleep(QUIET_MS);
    return { answers, received };
  } finally {
    await subscriber.stop();
  }
}

async function removeExchange(amqpUrl: string, exchange: string): Promise<void> {
  const connection = await connect(amqpUrl);
  const channel = await connection.createChannel();
  await channel.deleteExchange(exchange);
  await connection.close();
}

function printAnswers(steps: readonly Step[], answers: readonly Answer[]): void {
  say(`\n${paint('bold', 'Sent and answered')}`);
  printTable(
    ['', 'sent', 'to', 'status', 'outcome', 'event', 'ms'],
    steps.map((step, index) => {
      const answer = answers[index];
      return [
        String(index + 1),
        step.what,
        step.path === '' ? 'default' : step.path.slice(1),
        String(answer?.status ?? ''),
        answer?.outcome ?? '',
        answer?.eventId ?? '',
        answer?.ms.toFixed(1) ?? '',
      ];
    }),
  );
}

function printReceived(received: readonly Received[]): void {
  say(`\n${paint('bold', 'Received by a subscriber, in this order')}`);
  printTable(
    ['', 'routing key', 'message id', 'type', ''],
    received.map(({ routingKey, messageId, event }, index) => {
      const { type, late } = event as { type?: string; late?: boolean };
      return [String(index + 1), routingKey, messageId ?? '', type ?? '', late === true ? 'late' : ''];
    }),
  );
}

function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const toLine = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd();
  say(paint('dim', toLine(head)));
  for (const row of rows) say(toLine(row));
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

process.exit(await main(process.argv.slice(2)));
