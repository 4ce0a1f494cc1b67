// `tallyhook forward`: sends deliveries to a handler that somebody develops, as the conversion service would: the same bytes,
// signed again. Shows what the handler answers. Each delivery is posted once, one after the other.

import { AnswerError } from '../../base/errors.ts';
import { readUpTo } from '../../base/net/byte-stream.ts';
import type { Env } from '../../config.ts';
import { liveFilters, type OperatorsClient } from '../../operators/client/index.ts';
import { openApi } from '../../operators/kernel/api.command.ts';
import { filterHelp, filterOptions, readFilters } from '../../operators/kernel/list/filters.command.ts';
import { argumentOf, parse, someOf } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { option, optionHelp } from '../../terminal/options.ts';
import { type Delivery, type Followed, followDeliveries, untilAnswered } from './follow-deliveries.ts';
import { handlerUrl, postToHandler } from './handler-post.ts';
import { createForwarded, type Forwarded, isLocalRelay } from './loop.ts';
import { createForwardOutput, type Handed, sumOf } from './output.ts';
import { type ForwardSecrets, readSecrets } from './secrets.ts';

/** Authentic ones, whose bodies are kept. */
const FORWARDED = ['accepted', 'conflict', 'quarantined', 'malformed'] as const;
const FILTERS = {
  source: liveFilters.source,
  kind: liveFilters.kind,
  job_id: liveFilters.job_id,
};
const OPTIONS = {
  'secret-file': option(
    'FILE',
    'sign with the secret in this file (without it, with the secret that "send" uses for the source)',
  ),
  outcome: option('LIST', `only these, comma-separated: ${FORWARDED.join(',')} (all of them)`),
} as const;

const help = `Sends the deliveries that arrive to your handler, and shows its answers, until Ctrl-C; NDJSON when piped.

  forward URL             POST them to this http or https URL: the same bytes, signed again
${optionHelp(OPTIONS)}
${filterHelp(FILTERS)}

Bodies are sent to that URL. The token needs the role auditor, operator or admin, and the operator log records each body that
is read. Deliveries are posted one after the other, in the order of their arrival, each once: a failed one is not tried again,
and no redirect is followed. The handler has 10 s to answer, the same limit as the sender's. X-Request-Id is the id of the
delivery. A delivery that came from this forward is not forwarded again. The bodies of duplicates and of refused deliveries are
not kept: these are shown and not forwarded.`;

const TO_THE_RELAY =
  'this URL is the relay itself: what is forwarded there arrives as a delivery, which is not forwarded again';

/** No delivery has this id. */
const NO_DELIVERY = '00000000-0000-0000-0000-000000000000';
const FORBIDDEN = 403;
const NOT_FOUND = 404;
/** The largest limit that a service can have. */
const BODY_MAX_BYTES = 16 * 1024 * 1024;

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const { values, positionals } = parse(args, { ...filterOptions(FILTERS), ...OPTIONS }, 1);
  const url = handlerUrl(argumentOf(positionals, 'the URL of your handler'));
  const outcomes = values.outcome === undefined ? undefined : someOf('--outcome', values.outcome, FORWARDED);
  const filters = readFilters(FILTERS, values);
  const { secretOf, origin } = readSecrets(env, values['secret-file'], filters.source);
  const { client } = openApi(env, io);
  const stopped = new AbortController();
  const { signal } = stopped;
  const tally = { ok: 0, failed: 0, no_answer: 0, not_forwarded: 0, in_progress: 0, waiting: 0 };
  let followed: Followed | undefined;
  const stop = () => {
    tally.waiting = followed?.waiting() ?? 0; // before they are dropped
    stopped.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) io.signals.once(name, stop);

  const output = createForwardOutput(io);
  const query = { ...filters, ...(outcomes?.length === 1 && { outcome: outcomes[0] }) };
  const forwarded = createForwarded();
  try {
    await checkRole(client, { signal, io });
    io.complain(`forwarding to ${url.origin}${url.pathname}, signed with ${origin}`);
    if (isLocalRelay(url, env)) io.complain(TO_THE_RELAY);
    followed = followDeliveries({ client, query, signal, report: output.report });
    for await (const delivery of followed.deliveries) {
      if (outcomes?.every((outcome) => outcome !== delivery.outcome)) continue;
      tally.in_progress = 1;
      await output.start(delivery);
      const handed = await hand(delivery, { client, url, secretOf, signal, forwarded });
      tally.in_progress = 0;
      tally[handed.result] += 1;
      await output.print(delivery, handed, followed.waiting());
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  output.report(sumOf(tally));
  return 0;
}

/** Asks for a body that is not there: a token that may read bodies gets a 404. @throws AnswerError */
async function checkRole(
  client: OperatorsClient,
  { signal, io }: { signal: AbortSignal; io: Io },
): Promise<void> {
  try {
    await readUpTo(0, client.deliveryBody(NO_DELIVERY, { signal }));
  } catch (error) {
    if (error instanceof AnswerError && error.httpStatus === NOT_FOUND) return;
    if (error instanceof AnswerError && error.httpStatus === FORBIDDEN)
      io.complain(
        'forward reads the bodies of deliveries: the token needs the role auditor, operator or admin',
      );
    throw error;
  }
}

const notForwarded = (reason: string): Handed => ({ result: 'not_forwarded', reason });

type Deps = {
  readonly client: OperatorsClient;
  readonly url: URL;
  readonly secretOf: ForwardSecrets['secretOf'];
  readonly signal: AbortSignal;
  readonly forwarded: Forwarded;
};

async function hand(delivery: Delivery, deps: Deps): Promise<Handed> {
  const { client, url, secretOf, signal, forwarded } = deps;
  const { id, source, reason, body_kept: isKept } = delivery;
  if (!isKept) return notForwarded(reason ? `its body is not kept; ${reason}` : 'its body is not kept');
  try {
    const [{ headers }, body] = await untilAnswered(
      () =>
        Promise.all([
          client.delivery(id, { signal }),
          readUpTo(BODY_MAX_BYTES + 1, client.deliveryBody(id, { signal })),
        ]),
      signal,
    );
    if (forwarded.isOurs(headers)) return notForwarded('it came from this forward');
    if (body.length > BODY_MAX_BYTES) return notForwarded('its body is too large');
    const type = headers?.['content-type'];
    const contentType = typeof type === 'string' ? type : undefined;
    const { secret, signedAs } = secretOf(source);
    forwarded.add(id);
    const answer = await postToHandler(url, { body, contentType, secret, deliveryId: id }, signal);
    return { ...answer, ...(signedAs !== undefined && { signedAs }) };
  } catch (error) {
    // The service keeps it for RETENTION_DAYS.
    if (error instanceof AnswerError && error.httpStatus === NOT_FOUND)
      return notForwarded('its body is not kept any longer');
    throw error;
  }
}

export const forward: Command = { help, run };
