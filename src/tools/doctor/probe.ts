// One request of `tallyhook doctor`, made as a sender makes it: on a connection of its own, following no redirect, and within
// the time that a sender waits. It never rejects, and reads only the beginning of an answer.

import {
  type ClientRequest,
  request as http,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { request as https } from 'node:https';
import { parseIfJson } from '../../base/json/json.ts';
import { readUpTo } from '../../base/net/byte-stream.ts';
import { version } from '../../base/version.ts';
import { sign } from '../../signature/index.ts';
import { reasonOf } from '../../terminal/no-answer.ts';

export type Answer =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      /** The beginning of its body. */
      readonly text: string;
      /** The fields of its body; empty if that is no JSON object. */
      readonly fields: Readonly<Record<string, unknown>>;
      /** From the begin of the connection to the end of the answer. */
      readonly ms: number;
    }
  | {
      readonly kind: 'none';
      readonly reason: string;
      /** Another request was answered before: the address is right. */
      readonly isReached?: boolean | undefined;
    };

export type ProbeRequest = {
  readonly method?: 'POST' | 'GET';
  readonly body?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the head first, and the body only if no answer comes within this time. */
  readonly holdMs?: number;
};

export type Endpoint = {
  readonly url: URL;
  /** For one request: until the whole answer is there. What is held on purpose does not count. */
  readonly timeoutMs: number;
  /** Ends all that is under way. */
  readonly signal: AbortSignal;
  /** A request was answered before. */
  readonly isReached?: boolean;
};

/** Answers of Tallyhook are far shorter. */
const ANSWER_MAX_BYTES = 4_096;

/** A POST with the signature of `secret` over `signed`, which is the body unless it is given. */
export function post(
  endpoint: Endpoint,
  body: Buffer,
  { secret, signed = body, ...more }: ProbeRequest & { readonly secret: string; readonly signed?: Buffer },
): Promise<Answer> {
  return probe(endpoint, {
    ...more,
    body,
    headers: { ...more.headers, 'X-Service-Signature': sign(signed, secret) },
  });
}

export async function probe(endpoint: Endpoint, request: ProbeRequest): Promise<Answer> {
  const { url, timeoutMs, signal, isReached } = endpoint;
  const late = AbortSignal.timeout(timeoutMs + (request.holdMs ?? 0));
  const none = (reason: string): Answer => ({ kind: 'none', reason, isReached });
  const startedMs = performance.now();
  try {
    const { response, outgoing } = await send(url, request, AbortSignal.any([signal, late]));
    const text = String(await readUpTo(ANSWER_MAX_BYTES, response));
    outgoing.destroy(); // of a body that is not sent, or of an answer that is not read
    const json = parseIfJson(text);
    const fields = typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : {};
    const { statusCode: status = 0, headers } = response;
    return { kind: 'answer', status, headers, text, fields, ms: performance.now() - startedMs };
  } catch (error) {
    if (late.aborted) return none(`there was no answer within ${timeoutMs / 1_000} s`);
    if (signal.aborted) return none('the time for all checks together was over');
    return none(reasonOf(error, url));
  }
}

type Exchange = { readonly response: IncomingMessage; readonly outgoing: ClientRequest };

function send(
  url: URL,
  { method = 'POST', body, headers, holdMs = 0 }: ProbeRequest,
  signal: AbortSignal,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? https : http)(url, {
      method,
      agent: false, // no kept connection
      signal,
      headers: {
        'User-Agent': `tallyhook-doctor/${version}`,
        ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': body.length }),
        ...headers,
      },
    });
    outgoing.on('error', reject); // also after the answer, where it changes nothing
    let held: NodeJS.Timeout | undefined;
    outgoing.once('response', (response) => {
      clearTimeout(held);
      resolve({ response, outgoing });
    });
    outgoing.once('close', () => clearTimeout(held));
    if (holdMs === 0) return void outgoing.end(body);
    outgoing.flushHeaders();
    held = setTimeout(() => outgoing.end(body), holdMs);
  });
}
