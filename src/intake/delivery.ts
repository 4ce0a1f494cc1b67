// One delivery over HTTP: reads the body within its limits, hands it to the receiver, answers and logs one
// wide line, or leaves that to the counts that a flood gets. What cannot be read is refused here; what it means is none
// of this file's business.

import { randomUUIDv7 } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { UnavailableError } from '../errors.ts';
import { closeIfUnread, type Connections, NOSNIFF, peerOf, senderOf } from '../http/index.ts';
import type { Arrival, Receiver, Refusal, Verdict } from './receiver.ts';
import { isSignature } from './signature.ts';
import { DEFAULT_SOURCE } from './sources.ts';
import type { Bodies, Body } from './bodies.ts';
import type { UnavailableLines } from './observer.ts';

export type DeliveryObserver = (delivery: {
  source: string;
  outcome: string;
  remoteAddress: string | null;
  seconds: number;
  /** Of the secret that matched, where one did and the delivery was recorded. */
  fingerprint: string | undefined;
}) => void;

export type DeliveryOptions = {
  readonly receiver: Receiver;
  readonly bodies: Bodies;
  readonly connections: Pick<Connections, 'trust'>;
  readonly bodyLimitBytes: number;
  readonly answerDeadlineMs: number;
  readonly now: () => number;
  readonly log: Logger;
  readonly unavailable: UnavailableLines;
  readonly observe: DeliveryObserver;
};

/** Header values worth keeping for an audit. Anything else could be a secret of the sender or its proxies. */
const KEPT_HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'user-agent',
  'x-request-id',
  'x-forwarded-for',
  'traceparent',
] as const;
const KEPT_VALUE_LENGTH = 256;
const KEPT_PATH_LENGTH = 256;

const JSON_TYPE = 'application/json; charset=utf-8';

/** A sender that was turned away for our sake should be back soon, though not all in the same instant. */
const RETRY_AFTER_S = 2;

const TOO_SLOW: Refusal = {
  httpStatus: 408,
  error: 'request_timeout',
  message: 'the body did not arrive in time',
};
const INCOMPLETE: Refusal = {
  httpStatus: 400,
  error: 'bad_request',
  message: 'the body did not arrive whole',
};
const tooLarge = (limitBytes: number): Refusal => ({
  httpStatus: 413,
  error: 'payload_too_large',
  message: `the body is larger than ${limitBytes} bytes`,
});
const ENCODED: Refusal = {
  httpStatus: 415,
  error: 'unsupported_media_type',
  message: 'the body must be sent without Content-Encoding, since the signature is over the raw bytes',
};
const WRONG_METHOD: Refusal = {
  httpStatus: 405,
  error: 'method_not_allowed',
  message: 'send deliveries with POST',
};

export function deliveryHandler(options: DeliveryOptions): RequestHandler {
  const { receiver, bodies, connections, bodyLimitBytes, answerDeadlineMs, now } = options;
  const report = createReport(options);
  const reading = { limitBytes: bodyLimitBytes, patienceMs: answerDeadlineMs };

  function judge(arrival: Arrival, body: Body): Verdict | Promise<Verdict> {
    switch (body.kind) {
      case 'held':
        return receiver.receive(arrival, body.bytes);
      case 'counted':
        return receiver.rejectUnsigned(arrival, body.length);
      case 'shed':
        return receiver.turnAway(arrival, new UnavailableError('full', 'too many bodies are on their way'));
      case 'too-large':
        return receiver.refuse(arrival, tooLarge(bodyLimitBytes));
      case 'late':
        return receiver.refuse(arrival, TOO_SLOW);
      case 'incomplete':
        return receiver.refuse(arrival, INCOMPLETE);
      default:
        return body satisfies never;
    }
  }

  return async (request, response) => {
    const startedMs = now();
    const arrival = arrivalOf(request, startedMs + answerDeadlineMs);
    const body = isEncoded(request)
      ? undefined
      : await bodies.read(request, { ...reading, isHeld: isSignature(arrival.signature) });
    const verdict = body === undefined ? receiver.refuse(arrival, ENCODED) : await judge(arrival, body);
    if (verdict.isVerified) connections.trust(response);
    answer(request, response, verdict);
    report(arrival, verdict, lengthOf(body), now() - startedMs);
  };
}

export function wrongMethodHandler(options: DeliveryOptions): RequestHandler {
  const { receiver, answerDeadlineMs, now } = options;
  const report = createReport(options);
  return (request, response) => {
    const startedMs = now();
    const arrival = arrivalOf(request, startedMs + answerDeadlineMs);
    const verdict = receiver.refuse(arrival, WRONG_METHOD);
    response.set('Allow', 'POST');
    answer(request, response, verdict);
    report(arrival, verdict, undefined, now() - startedMs);
  };
}

function arrivalOf(request: Request, deadlineMs: number): Arrival {
  const { source = DEFAULT_SOURCE } = request.params;
  const sender = senderOf(request);
  const peer = peerOf(request);
  return {
    id: randomUUIDv7(),
    source: String(source),
    path: request.path.slice(0, KEPT_PATH_LENGTH),
    signature: request.get('x-service-signature'),
    remoteAddress: sender,
    peerAddress: peer === sender ? null : peer,
    headers: keptHeaders(request),
    deadlineMs,
  };
}

function keptHeaders(request: Request): string {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = request.headers[name];
    if (value === undefined) continue;
    const text = String(value);
    // Proxies append: the right end is theirs, and the left one whatever the sender wrote there.
    kept[name] =
      name === 'x-forwarded-for' ? text.slice(-KEPT_VALUE_LENGTH) : text.slice(0, KEPT_VALUE_LENGTH);
  }
  return JSON.stringify(kept);
}

function isEncoded(request: Request): boolean {
  const encoding = request.get('content-encoding');
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') return true;
  // Node takes `gzip, chunked` for chunked and would hand us the compressed bytes.
  const transfer = request.get('transfer-encoding');
  return transfer !== undefined && transfer.trim().toLowerCase() !== 'chunked';
}

/** Of one that arrived whole. */
function lengthOf(body: Body | undefined): number | undefined {
  if (body?.kind === 'held') return body.bytes.length;
  return body?.kind === 'counted' ? body.length : undefined;
}

function answer(request: Request, response: Response, verdict: Verdict): void {
  if (verdict.httpStatus === 503) response.set('Retry-After', String(RETRY_AFTER_S));
  closeIfUnread(request, response);
  // As response.json() would, without its search for a charset and an ETag.
  const body = JSON.stringify(verdict.answer);
  response
    .writeHead(verdict.httpStatus, {
      'Content-Type': JSON_TYPE,
      'Content-Length': Buffer.byteLength(body),
      ...NOSNIFF,
    })
    .end(body);
}

type Report = (arrival: Arrival, verdict: Verdict, bodyBytes: number | undefined, elapsedMs: number) => void;

function createReport({ log, unavailable, observe }: DeliveryOptions): Report {
  // The line holds the few fields that stand here and no object of a request: looking through it for secrets, as
  // the log does elsewhere, would be half of its cost.
  const lines = log.child({}, { redact: [] });
  return (arrival, verdict, bodyBytes, elapsedMs) => {
    const outcome = verdict.outcome ?? 'unavailable';
    const { source, fingerprint } = verdict;
    const { remoteAddress } = arrival;
    observe({ source, outcome, remoteAddress, seconds: elapsedMs / 1_000, fingerprint });
    if (verdict.trace === 'counted') return;
    const line = {
      delivery: arrival.id,
      source,
      outcome,
      status: verdict.httpStatus,
      ms: Math.round(elapsedMs * 10) / 10,
      bytes: bodyBytes,
      event: verdict.eventId,
      job: verdict.jobId,
      late: verdict.late || undefined,
      fingerprint,
      reason: verdict.reason,
      remote: remoteAddress,
      peer: arrival.peerAddress ?? undefined,
    };
    if (verdict.httpStatus === 503) unavailable.write(line, verdict.cause);
    else lines.info(line, 'delivery');
  };
}
