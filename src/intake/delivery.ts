// One delivery over HTTP: reads the body within its limits, hands it to the receiver, and sends the answer. Refuses what it
// cannot read: another method, an encoded body, and a body that is too large, too slow or not whole.

import { randomUUIDv7 } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler } from 'express';
import { DELIVERY_ERRORS, RETRY_AFTER_S } from '../base/delivery-answers.ts';
import { UnavailableError } from '../base/errors.ts';
import { closeIfUnread, type Connections, NOSNIFF, peerOf, senderOf } from '../http/index.ts';
import type { Delivery } from '../ledger/index.ts';
import type { Bodies, Body } from './bodies.ts';
import type { DeliveryObserver } from './observer.ts';
import type { Answer, Receiver, Refusal } from './receiver.ts';
import { SIGNATURE_HEADER } from '../base/signing/signature-cause.ts';
import { DEFAULT_SOURCE } from '../base/text/source-name.ts';
import { isSignature } from './signature.ts';

export type DeliveryOptions = {
  readonly receiver: Receiver;
  readonly bodies: Bodies;
  readonly observer: DeliveryObserver;
  readonly connections: Pick<Connections, 'trust'>;
  readonly bodyLimitBytes: number;
  readonly answerDeadlineMs: number;
  readonly now: () => number;
};

/** Header values that are kept for the audit. Any other could be a secret of the sender or its proxies. */
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

const tooLarge = (limitBytes: number): Refusal => ({
  ...DELIVERY_ERRORS.tooLarge,
  message: `the body is larger than ${limitBytes} bytes`,
});
const LATE: Refusal = {
  ...DELIVERY_ERRORS.late,
  message: 'the body did not arrive in time',
};
const INCOMPLETE: Refusal = {
  ...DELIVERY_ERRORS.incomplete,
  message: 'the body did not arrive whole',
};
const ENCODED: Refusal = {
  ...DELIVERY_ERRORS.encoded,
  message: 'the body must be sent without Content-Encoding, since the signature is over the raw bytes',
};
const WRONG_METHOD: Refusal = {
  ...DELIVERY_ERRORS.wrongMethod,
  message: 'send deliveries with POST',
};

type NotBuffered = Exclude<Body, { kind: 'buffered' }> | { readonly kind: 'encoded' };

/** Rejects for a bug only. */
export function deliveryHandler(options: DeliveryOptions): RequestHandler {
  const { receiver, bodies, observer, connections, bodyLimitBytes, answerDeadlineMs, now } = options;

  function answerNotBuffered(delivery: Delivery, body: NotBuffered): Answer {
    switch (body.kind) {
      case 'encoded':
        return receiver.refuse(delivery, ENCODED);
      case 'too-large':
        return receiver.refuse(delivery, tooLarge(bodyLimitBytes));
      case 'late':
        return receiver.refuse(delivery, LATE);
      case 'incomplete':
        return receiver.refuse(delivery, INCOMPLETE);
      case 'shed':
        return receiver.turnAway(delivery, new UnavailableError('full', 'too many bodies are on their way'));
      case 'counted':
        return receiver.rejectUnsigned(delivery, body.length);
    }
  }

  return async (request, response) => {
    const startedMs = now();
    const deadlineMs = startedMs + answerDeadlineMs;
    const delivery = deliveryOf(request);
    const signature = textOf(request, SIGNATURE_HEADER);
    const body = isEncoded(request)
      ? ({ kind: 'encoded' } as const)
      : await bodies.read(request, {
          isBuffered: isSignature(signature),
          limitBytes: bodyLimitBytes,
          deadlineMs,
        });
    const answer =
      body.kind === 'buffered'
        ? await receiver.receive(delivery, { body: body.bytes, signature, deadlineMs })
        : answerNotBuffered(delivery, body);
    if (answer.isVerified) connections.trust(response);
    const hasLeft = isGone(request);
    send(request, response, answer);
    const bytes = body.kind === 'buffered' ? body.bytes : undefined;
    observer.answered(answer, now() - startedMs, { headers: request.headers, body: bytes, hasLeft });
  };
}

export function wrongMethodHandler({ receiver, observer, now }: DeliveryOptions): RequestHandler {
  return (request, response) => {
    const startedMs = now();
    const answer = receiver.refuse(deliveryOf(request), WRONG_METHOD);
    response.set('Allow', 'POST');
    const hasLeft = isGone(request);
    send(request, response, answer);
    observer.answered(answer, now() - startedMs, { headers: request.headers, body: undefined, hasLeft });
  };
}

/** What the head of a request says. */
function deliveryOf(request: Request): Delivery {
  const { source = DEFAULT_SOURCE } = request.params;
  const sender = senderOf(request);
  const peer = peerOf(request);
  return {
    id: randomUUIDv7(),
    source: String(source),
    path: request.path.slice(0, KEPT_PATH_LENGTH),
    remoteAddress: sender,
    peerAddress: peer === sender ? null : peer,
    headers: keptHeaders(request),
    secretFingerprint: null,
    jobId: null,
    status: null,
    progress: null,
    reason: null,
    signedBy: null,
    bodyBytes: null,
    body: null,
  };
}

function keptHeaders(request: IncomingMessage): string {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = request.headers[name];
    if (value === undefined) continue;
    const text = String(value);
    // Proxies append, so the right end is theirs; the left end is whatever the sender wrote.
    kept[name] =
      name === 'x-forwarded-for' ? text.slice(-KEPT_VALUE_LENGTH) : text.slice(0, KEPT_VALUE_LENGTH);
  }
  return JSON.stringify(kept);
}

/** An answer would reach nobody: the sender reset or ended its connection. One that fell silent is not told from one that waits. */
const isGone = ({ socket }: IncomingMessage): boolean => !socket.writable;

/** Only `Set-Cookie` would be a list. */
const textOf = ({ headers }: IncomingMessage, name: string) => headers[name] as string | undefined;

function isEncoded(request: IncomingMessage): boolean {
  const encoding = textOf(request, 'content-encoding');
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') return true;
  // Node treats `gzip, chunked` as chunked and would give us the compressed bytes.
  const transfer = textOf(request, 'transfer-encoding');
  return transfer !== undefined && transfer.trim().toLowerCase() !== 'chunked';
}

function send(request: IncomingMessage, response: ServerResponse, { httpStatus, body }: Answer): void {
  if (httpStatus === 503) response.setHeader('Retry-After', String(RETRY_AFTER_S));
  closeIfUnread(request, response);
  // As response.json() would, without its search for a charset and an ETag.
  const json = JSON.stringify(body);
  response
    .writeHead(httpStatus, {
      'Content-Type': JSON_TYPE,
      'Content-Length': Buffer.byteLength(json),
      ...NOSNIFF,
    })
    .end(json);
}
