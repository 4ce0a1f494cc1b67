// `tallyhook send`: signs a realistic notification and sends it to a relay, as the conversion service would.
// Its signing is its own and not intake's: two that share code would share its bugs.

import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Env } from '../config.ts';
import { UsageError } from '../errors.ts';
import { parseJson } from '../json.ts';
import { parse, whole } from './arguments.ts';
import type { Command } from './command.ts';
import { withLocalRun } from './environment.ts';
import { complain, paint, say } from './output.ts';
import { clean } from './readable.ts';

const KINDS = ['completed', 'failed', 'progress'] as const;
type Kind = (typeof KINDS)[number];

const help = `Signs a realistic notification and sends it to a relay.

  send [KIND]             completed, failed or progress (completed)
    --job ID                the job's id (a random one)
    --percent N             progress in percent (50)
    --source NAME           sign and send as this source of SOURCES_FILE
    --url URL               where to (http://127.0.0.1:$PORT/webhooks[/NAME])
    --file BODY.json        send these bytes instead
    --tamper                change the body after signing
    --repeat N              send the same N times (1)

Exit code 0 if every answer was a 2xx, otherwise 1.`;

type SendOptions = {
  readonly kind: Kind;
  readonly job: string | undefined;
  readonly percent: number;
  readonly source: string | undefined;
  readonly url: string | undefined;
  readonly tamper: boolean;
  readonly file: string | undefined;
  readonly repeat: number;
};

/** The sender's own limit (spec 6.1). */
const TIMEOUT_MS = 10_000;

/** Exit code 0 if every answer was a 2xx, otherwise 1. */
async function send(options: SendOptions, env: Env): Promise<number> {
  const url = options.url ?? webhookUrl(env, options.source);
  const body = options.file === undefined ? notification(options) : readBody(options.file);
  const secret = signingSecret(env, options.source);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  // Signed first and changed after: what an attacker on the way could do.
  const sent = options.tamper ? Buffer.concat([body, Buffer.from(' ')]) : body;
  let failed = 0;
  for (let copy = 0; copy < options.repeat; copy++) {
    if (!(await post(url, sent, signature))) failed += 1;
  }
  return failed === 0 ? 0 : 1;
}

async function post(url: string, body: Buffer, signature: string): Promise<boolean> {
  const startedMs = performance.now();
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Service-Signature': signature },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    const ms = (performance.now() - startedMs).toFixed(1);
    say(
      `${paint(response.ok ? 'green' : 'red', String(response.status))} ${clean(describe(text))} ${paint('dim', `${ms} ms`)}`,
    );
    return response.ok;
  } catch (error) {
    complain(`no answer from ${url}: ${reasonOf(error)}`);
    return false;
  }
}

function describe(text: string): string {
  try {
    const answer = parseJson(text) as Record<string, string | null>;
    if (answer['outcome'] !== undefined) return `${answer['outcome']} ${answer['event_id'] ?? ''}`.trim();
    if (answer['error'] !== undefined) return `${answer['error']}: ${answer['message']}`;
  } catch {
    // Not our answer's form: shown as it is.
  }
  return text.slice(0, 200);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}

function webhookUrl(env: Env, source: string | undefined): string {
  const base = `http://127.0.0.1:${env['PORT'] ?? 8080}/webhooks`;
  return source === undefined ? base : `${base}/${source}`;
}

function signingSecret(env: Env, source: string | undefined): string {
  if (source !== undefined && source !== 'default') return namedSecret(env, source);
  const file = env['SIGNING_SECRETS_FILE'];
  const list =
    env['SIGNING_SECRETS'] ?? (file === undefined ? undefined : readText(file, 'SIGNING_SECRETS_FILE'));
  const secret = list?.split(',')[0]?.trim();
  if (!secret)
    throw new UsageError('no secret to sign with: set SIGNING_SECRETS, or start a relay with "npm start"');
  return secret;
}

function namedSecret(env: Env, source: string): string {
  const file = env['SOURCES_FILE'];
  if (!file) throw new UsageError(`SOURCES_FILE must be set to sign as the source "${source}"`);
  let secret: unknown;
  try {
    const sources = parseJson(readText(file, 'SOURCES_FILE')) as Record<string, { secrets?: unknown[] }>;
    secret = Object.hasOwn(sources, source) ? sources[source]?.secrets?.[0] : undefined;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError('SOURCES_FILE is not JSON');
  }
  if (typeof secret !== 'string') throw new UsageError(`SOURCES_FILE has no source "${source}"`);
  return secret;
}

function readText(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Byte for byte, since the signature is over the bytes. */
function readBody(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`--file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

const at = (secondsFromNow: number) => new Date(Date.now() + secondsFromNow * 1_000).toISOString();

/** The fields of spec 6.2 for the kind, with values that a real job could have. */
function notification({ kind, job, percent }: SendOptions): Buffer {
  const id = job ?? `job_${randomBytes(6).toString('hex')}`;
  const bodies = {
    completed: {
      job_id: id,
      status: 'completed',
      job_type: 'video',
      progress_percentage: 100,
      cost_micros: 1_250_000,
      cost_cents: 125,
      processing_time_seconds: 42,
      output_size_bytes: 10_485_760,
      input_format: 'mp4',
      output_format: 'webm',
      created_at: at(-60),
      completed_at: at(0),
    },
    failed: {
      job_id: id,
      status: 'failed',
      job_type: 'video',
      progress_percentage: percent,
      error_message: 'the input file is corrupted or cannot be read',
      error_code: 'INVALID_INPUT',
      created_at: at(-60),
      failed_at: at(0),
    },
    progress: {
      job_id: id,
      status: 'processing',
      progress_percentage: percent,
      estimated_completion: at(90),
    },
  };
  return Buffer.from(JSON.stringify(bodies[kind]));
}

function run(args: string[], env: Env): Promise<number> {
  const text = { type: 'string' } as const;
  const options = {
    job: text,
    percent: text,
    source: text,
    url: text,
    file: text,
    tamper: { type: 'boolean' },
    repeat: text,
  } as const;
  const { values, positionals } = parse(args, options, 1);
  const [word = 'completed'] = positionals;
  const kind = KINDS.find((known) => known === word);
  if (kind === undefined) throw new UsageError(`send takes one of ${KINDS.join(', ')}`);
  return send(
    {
      kind,
      job: values.job,
      percent: whole('--percent', values.percent, 50, { min: 0, max: 100 }),
      source: values.source,
      url: values.url,
      file: values.file,
      tamper: values.tamper ?? false,
      repeat: whole('--repeat', values.repeat, 1, { min: 1, max: 1_000_000 }),
    },
    withLocalRun(env),
  );
}

export const sendCommand: Command = { help, run };
