// `tallyhook send`: signs a realistic notification and sends it to a relay, as the conversion service would.

import { randomBytes } from 'node:crypto';
import { describeError, UsageError } from '../../base/errors.ts';
import { parseIfJson } from '../../base/json/json.ts';
import type { Env } from '../../config.ts';
import { KINDS } from '../../event/index.ts';
import { sign } from '../../signature/index.ts';
import { parse, whole } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import { NOTHING_LISTENS, withLocalRun } from '../../terminal/environment.ts';
import type { Io } from '../../terminal/io.ts';
import { readNamedFile } from '../../terminal/named-file.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { clean } from '../../terminal/readable.ts';
import { sampleNotification } from '../../testing/index.ts';
import { webhookUrlOf } from './local-relay.ts';
import { reasonOf } from '../../terminal/no-answer.ts';
import { signingSecret } from './secret.ts';

const OPTIONS = {
  job: option('ID', "the job's id (a random one)"),
  percent: option('N', 'progress in percent, of progress and failed (50)'),
  now: flag('the job ends now (without it, at a fixed time in January 2026)'),
  source: option('NAME', 'sign and send as this source of SOURCES_FILE (default)'),
  url: option('URL', 'where to send it (http://127.0.0.1:$PORT/webhooks[/NAME])'),
  file: option('BODY.json', 'send the bytes of this file instead'),
  tamper: flag('change the body after signing: the relay refuses it'),
  repeat: option('N', 'send it N times (1)'),
} as const;

const help = `Signs a realistic notification and sends it to a relay.

  send [KIND]             completed, failed or progress (completed)
${optionHelp(OPTIONS, 23)}

The same kind, job and percentage are always the same bytes. So a second "send" of them is a duplicate. With --now the times
in the body are different each time: a second one is a conflict.

Exit code 0 if every answer was a 2xx, otherwise 1.`;

/** The sender's own limit (service interface 6.1). */
const TIMEOUT_MS = 10_000;

async function run(args: string[], given: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS, 1);
  const { source, tamper } = values;
  const [word = 'completed'] = positionals;
  const kind = KINDS.find((known) => known === word);
  if (kind === undefined) throw new UsageError(`send takes one of ${KINDS.join(', ')}`);
  const body = bodyOf(kind, values);
  const repeat = whole('--repeat', values.repeat, 1, { min: 1, max: 1_000_000 });

  const env = withLocalRun(given);
  const url = values.url ?? webhookUrlOf(env, source);
  if (!URL.canParse(url)) throw new UsageError('--url takes an http or https URL');
  const secret = signingSecret(env, source);
  const signature = sign(body, secret);
  // Changed after signing: what an attacker on the way could do.
  const sent = tamper === true ? Buffer.concat([body, Buffer.from(' ')]) : body;
  const results = new Set<Result>();
  for (let copy = 0; copy < repeat; copy++) results.add(await post(io, url, { body: sent, signature }));
  if (results.has('nothing_listens') && values.url === undefined) io.complain(NOTHING_LISTENS);
  return results.has('failed') || results.has('nothing_listens') ? 1 : 0;
}

type Values = ReturnType<typeof parse<typeof OPTIONS>>['values'];

/** With --file, byte for byte: the signature is over the bytes. @throws UsageError */
function bodyOf(kind: (typeof KINDS)[number], { job, percent, now, file }: Values): Buffer {
  const percentage = whole('--percent', percent, 50, { min: 0, max: 100 });
  if (file === undefined) {
    if (kind === 'completed' && percent !== undefined)
      throw new UsageError('--percent is for progress and failed: a completed job is at 100');
    const named = job ?? `job_${randomBytes(6).toString('hex')}`;
    const endMs = now === true ? Date.now() : undefined;
    return Buffer.from(sampleNotification({ kind, job: named, percent: percentage, endMs }));
  }
  if (job !== undefined || percent !== undefined || now === true) {
    throw new UsageError('--file sends its bytes as they are: --job, --percent and --now cannot change them');
  }
  return readNamedFile('--file', file);
}

/** `ok`: the answer was a 2xx. */
type Result = 'ok' | 'failed' | 'nothing_listens';

async function post(
  io: Io,
  url: string,
  { body, signature }: { body: Buffer; signature: string },
): Promise<Result> {
  const startedMs = performance.now();
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Service-Signature': signature },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = clean(summary(await response.text()));
    const took = io.paint('dim', `${(performance.now() - startedMs).toFixed(1)} ms`);
    io.say(`${io.paint(response.ok ? 'green' : 'red', String(response.status))} ${answer} ${took}`);
    return response.ok ? 'ok' : 'failed';
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    io.complain(`no answer from ${url}: ${reasonOf(cause, new URL(url))}`);
    const isRefused = describeError(cause).code === 'ECONNREFUSED';
    return isRefused ? 'nothing_listens' : 'failed';
  }
}

/** What the answer says. One that is not a relay's is cut. */
function summary(answer: string): string {
  const {
    outcome,
    event_id: id,
    error,
    message,
  } = (parseIfJson(answer) ?? {}) as Record<string, string | null>;
  if (outcome !== undefined) return `${outcome} ${id ?? ''}`.trim();
  if (error !== undefined) return `${error}: ${message}`;
  return answer.slice(0, 200);
}

export const sendCommand: Command = { help, run };
