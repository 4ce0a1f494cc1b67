// `tallyhook doctor`: checks a deployed endpoint from the sender's side, says what is wrong with it, and how to mend it. Makes no
// event unless it is told to. No secret is shown.

import { UsageError } from '../../base/errors.ts';
import { addressFault } from '../../base/net/http-client.ts';
import type { Env } from '../../config.ts';
import { parse, seconds } from '../../terminal/arguments.ts';
import { confirm, hasSomebody } from '../../terminal/ask.ts';
import type { Command } from '../../terminal/command.ts';
import { withLocalRun } from '../../terminal/environment.ts';
import type { Io } from '../../terminal/io.ts';
import { flag, option, optionHelp } from '../../terminal/options.ts';
import { webhookUrlOf } from '../send/local-relay.ts';
import { localSecret, readSecrets } from '../verify/secrets.ts';
import { examine, type Plan, timeoutsFor } from './checks.ts';
import { newDoctorJob } from './event.ts';
import type { Finding } from './finding.ts';
import { printFinding, sumOf } from './output.ts';

const OPTIONS = {
  'secret-file': {
    ...option(
      'FILE',
      `the signing secret, or several separated by commas, as in SIGNING_SECRETS_FILE. May be given
several times: each must be accepted. Without it, the secret that "send" signs with`,
    ),
    multiple: true,
  },
  source: option('NAME', 'without --secret-file: the first secret of this source of SOURCES_FILE (default)'),
  timeout: option('TIME', 'how long the sender waits for an answer: 0.5, 5s, 1m (10s)'),
  'with-event': flag('make one event, too, and send it again. Asks first'),
  yes: flag('do not ask'),
  json: flag('a JSON object for each check on a terminal, too, as when it is piped'),
} as const;

const help = `Checks an endpoint from the sender's side: what is wrong with it, and how to mend it.

  doctor [URL]            the whole address that senders get (http://127.0.0.1:$PORT/webhooks[/NAME])
${optionHelp(OPTIONS, 23)}

Checks the address, TLS and its certificate, that a right signature is accepted and a forged or missing one refused, that
bodies arrive byte for byte, methods, encodings, the limit of size, and the time to answer. The bodies that it signs are no
notifications: the service records them as malformed, and they make no event. The event of --with-event tells that a job
doctor-… has failed, with the error code DOCTOR_TEST: subscribers receive it.

Exit code 0 if nothing failed, 1 if something did. Warnings do not count.`;

/** The sender's own limit (service interface 6.1). */
const TIMEOUT_S = 10;
const TIMEOUT_RANGE_S = { min: 0.1, max: 60 };

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS, 1);
  const isJson = values.json === true || !io.stdout.isTTY;
  const { plan, notes } = planOf(values, positionals[0], { env, io });
  for (const note of notes) io.complain(note);
  io.complain(`checking ${plan.endpoint.url.href}`);
  const findings: Finding[] = [];
  for await (const finding of examine(plan)) {
    findings.push(finding);
    await printFinding(io, finding, { isJson });
  }
  io.complain(sumOf(findings));
  return findings.some(({ result }) => result === 'failed') ? 1 : 0;
}

type Values = ReturnType<typeof parse<typeof OPTIONS>>['values'];

/** @throws UsageError */
function planOf(
  values: Values,
  address: string | undefined,
  { env, io }: { env: Env; io: Io },
): { readonly plan: Plan; readonly notes: readonly string[] } {
  const { 'secret-file': files = [], source, timeout } = values;
  if (files.length > 0 && source !== undefined) {
    throw new UsageError('--source chooses a secret of SOURCES_FILE: leave out --secret-file');
  }
  const url = address ?? webhookUrlOf(withLocalRun(env), source);
  const fault = addressFault(url);
  if (fault !== undefined) throw new UsageError(fault);
  const { secrets, notes } = files.length > 0 ? readSecrets(files) : localSecret(env, source);
  const timeoutMs = seconds('--timeout', timeout, TIMEOUT_S, TIMEOUT_RANGE_S) * 1_000;
  const signal = AbortSignal.timeout(timeoutsFor(secrets) * timeoutMs);
  return {
    plan: { endpoint: { url: new URL(url), timeoutMs, signal }, secrets, event: eventOf(values, io) },
    notes,
  };
}

/** @throws UsageError if nobody can be asked */
function eventOf({ 'with-event': withEvent, yes }: Values, io: Io): Plan['event'] {
  if (withEvent !== true) {
    if (yes === true) throw new UsageError('--yes answers the question of --with-event, which is missing');
    return undefined;
  }
  if (yes !== true && !hasSomebody(io)) {
    throw new UsageError('there is no terminal to ask on: --with-event needs --yes');
  }
  const job = newDoctorJob();
  const question = `This makes one event for the job ${job}, which subscribers receive. Go on?`;
  return { job, mayMake: () => (yes === true ? Promise.resolve(true) : confirm(io, question)) };
}

export const doctor: Command = { help, run };
