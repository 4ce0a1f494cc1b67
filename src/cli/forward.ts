// `tallyhook forward`: hands what arrives to a handler that somebody develops, as the conversion service would send it: the same
// bytes, signed anew. Shows what the handler answers. Each delivery is posted once, one after the other.

import type { Env } from '../config.ts';
import { AnswerError, UsageError } from '../errors.ts';
import { liveFilters, type OperatorsClient } from '../operators/client/index.ts';
import { openApi } from './api.ts';
import { argumentOf, parse, someOf, TEXT } from './arguments.ts';
import type { Command } from './command.ts';
import { withLocalRun } from './environment.ts';
import { filterHelp, filterOptions, filtersOf, readFilters } from './filters.ts';
import { type Delivery, followDeliveries, untilAnswered } from './follow-deliveries.ts';
import { type Handed, print, sumOf } from './forward-output.ts';
import { handlerUrl, postToHandler, readUpTo } from './handler-post.ts';
import { readNamedFile } from './named-file.ts';
import { complain } from './output.ts';
import { signingSecret } from './send-secret.ts';

/** Authentic ones, whose bodies are kept. */
const FORWARDED = ['accepted', 'conflict', 'quarantined', 'malformed'] as const;
const FILTERS = filtersOf(liveFilters).filter((name) => ['source', 'kind', 'job_id'].includes(name));
const OPTIONS = { ...filterOptions(FILTERS), outcome: TEXT, 'secret-file': TEXT };

const help = `Hands the deliveries that arrive to a handler that you develop, and shows its answers, until Ctrl-C; NDJSON when piped.

  forward URL             POST them to this http or https URL: the same bytes, signed anew
    --secret-file FILE    sign with the secret in this file (without it, as "send" does)
    --outcome LIST        only these, comma-separated: ${FORWARDED.join(',')} (all of them)
${filterHelp(FILTERS)}

The bodies leave the service for that URL. The token needs the role auditor, operator or admin, and the operator log records
each body that is read. Deliveries are posted one after the other, in the order of their arrival, each once: a failed one is
not tried again, and no redirect is followed. The handler has 10 s to answer, as the sender gives it. X-Request-Id is the id of
the delivery. The bodies of duplicates and of refused deliveries are not kept: these are shown and not forwarded.`;

/** No delivery has this id. */
const NO_DELIVERY = '00000000-0000-0000-0000-000000000000';
const FORBIDDEN = 403;
const NOT_FOUND = 404;
/** The largest limit that a service can have. */
const BODY_MAX_BYTES = 16 * 1024 * 1024;

async function run(args: string[], env: Env): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS, 1);
  const url = handlerUrl(argumentOf(positionals, 'the URL of your handler'));
  const outcomes = values.outcome === undefined ? undefined : someOf('--outcome', values.outcome, FORWARDED);
  const filters = readFilters(FILTERS, values);
  const { secret, origin } = readSecret(env, values['secret-file'], filters.source);
  const { client } = openApi(env);
  const stopped = new AbortController();
  const { signal } = stopped;
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());

  const tally = { ok: 0, failed: 0, no_answer: 0, not_forwarded: 0 };
  const query = { ...filters, ...(outcomes?.length === 1 && { outcome: outcomes[0] }) };
  try {
    await checkRole(client, signal);
    complain(`forwarding to ${url.origin}${url.pathname}, signed with ${origin}`);
    const { deliveries, waiting } = followDeliveries({ client, query, signal, report: complain });
    for await (const delivery of deliveries) {
      if (outcomes?.every((outcome) => outcome !== delivery.outcome)) continue;
      const handed = await hand(delivery, { client, url, secret, signal });
      tally[handed.result] += 1;
      await print(delivery, handed, waiting());
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  complain(sumOf(tally));
  return 0;
}

function readSecret(env: Env, file: string | undefined, source: string | undefined) {
  if (file === undefined) {
    const secret = signingSecret(withLocalRun(env), source);
    return { secret, origin: `the secret of the source "${source ?? 'default'}" that "send" uses` };
  }
  const secret = String(readNamedFile('--secret-file', file)).trim();
  if (secret === '') throw new UsageError('--secret-file is empty');
  return { secret, origin: 'the secret of --secret-file' };
}

/** Asks for a body that is not there: a token that may read bodies gets a 404. @throws AnswerError */
async function checkRole(client: OperatorsClient, signal: AbortSignal): Promise<void> {
  try {
    await readUpTo(0, client.deliveryBody(NO_DELIVERY, { signal }));
  } catch (error) {
    if (error instanceof AnswerError && error.httpStatus === NOT_FOUND) return;
    if (error instanceof AnswerError && error.httpStatus === FORBIDDEN)
      complain('forward reads the bodies of deliveries: the token needs the role auditor, operator or admin');
    throw error;
  }
}

const notForwarded = (reason: string): Handed => ({ result: 'not_forwarded', reason });

type Deps = {
  readonly client: OperatorsClient;
  readonly url: URL;
  readonly secret: string;
  readonly signal: AbortSignal;
};

async function hand(delivery: Delivery, { client, url, secret, signal }: Deps): Promise<Handed> {
  const { id, reason, body_kept: isKept } = delivery;
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
    if (body.length > BODY_MAX_BYTES) return notForwarded('its body is too large');
    const type = headers?.['content-type'];
    const contentType = typeof type === 'string' ? type : undefined;
    return await postToHandler(url, { body, contentType, secret, deliveryId: id }, signal);
  } catch (error) {
    // The service keeps it for RETENTION_DAYS.
    if (error instanceof AnswerError && error.httpStatus === NOT_FOUND)
      return notForwarded('its body is not kept any longer');
    throw error;
  }
}

export const forward: Command = { help, run };
