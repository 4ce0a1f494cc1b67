// What an answer to `tallyhook doctor` means, if it is not the expected one: what was seen, and how to mend it. Pure.

import { DELIVERY_ERRORS } from '../../base/delivery-answers.ts';
import { clean } from '../../terminal/readable.ts';
import { cut } from '../../terminal/text-width.ts';
import type { Answer } from './probe.ts';

export type Fault = { readonly found: string; readonly mend: string };

type ErrorAnswer = { readonly httpStatus: number; readonly error: string };

/** Whether Tallyhook gave this error: a proxy or another service has other words. */
export function isOwn(answer: Answer, { httpStatus, error }: ErrorAnswer): boolean {
  return answer.kind === 'answer' && answer.status === httpStatus && answer.fields['error'] === error;
}

/** The answer to an authentic body that is no notification: its signature was accepted, and it made no event. */
export const isMalformed = (answer: Answer) => isOwn(answer, DELIVERY_ERRORS.malformed);
export const isUnauthorized = (answer: Answer) => isOwn(answer, DELIVERY_ERRORS.unauthorized);
export const isSuccess = (answer: Answer) =>
  answer.kind === 'answer' && answer.status >= 200 && answer.status < 300;

/** `sent`: what the answer is to, as in `a signed body`. */
export function explain(answer: Answer, sent: string): Fault {
  if (answer.kind === 'none') {
    return {
      found: `no answer to ${sent}: ${clean(answer.reason)}`,
      mend: answer.isReached ? SLOW_OR_BROKEN : UNREACHED,
    };
  }
  const { status } = answer;
  const { words, mend } = meaningOf(answer);
  return { found: `${sent} was answered with ${status}: ${words}`, mend };
}

const UNREACHED =
  'check the address and the port, that the service and the proxy run, and that a firewall lets senders pass';
const SLOW_OR_BROKEN =
  'other requests were answered, so the address is right. Look at what is slow, or ends connections, on the way to the service, and at its load and its Postgres: tallyhook stats';

type Meaning = { readonly words: string; readonly mend: string };
type Given = Extract<Answer, { kind: 'answer' }>;

function meaningOf(answer: Given): Meaning {
  const { status } = answer;
  if (status >= 300 && status < 400) return redirect(answer);
  const own = OWN.find((meaning) => isOwn(answer, meaning.error));
  if (own !== undefined) return own;
  return { words: `${quote(answer)}, which Tallyhook does not answer`, mend: mendOther(status) };
}

function redirect({ headers: { location } }: Given): Meaning {
  const to = location === undefined ? 'another address' : cut(clean(location), QUOTE_WIDTH);
  return {
    words: `a redirect to ${to}. Senders follow no redirect`,
    mend: 'give senders the address that it leads to, if it is the right one, or let the proxy answer here itself',
  };
}

/** Answers of Tallyhook. */
const OWN: readonly (Meaning & { readonly error: ErrorAnswer })[] = [
  {
    error: DELIVERY_ERRORS.malformed,
    words: 'the signature was accepted',
    mend: 'this should be refused: report it to the operators of the service',
  },
  {
    error: DELIVERY_ERRORS.unauthorized,
    words: 'the signature was refused',
    mend: 'the proxy in front has to pass the body and X-Service-Signature on as they come',
  },
  {
    error: { httpStatus: 404, error: 'not_found' },
    words: 'Tallyhook has nothing at this path',
    mend: 'the path is /webhooks, or /webhooks/<source>: in lower case, and without a slash at its end. The port is PORT, and not OPERATOR_PORT',
  },
  {
    error: DELIVERY_ERRORS.late,
    words: 'the body did not arrive in time',
    mend: 'look for what slows requests down between this machine and the service',
  },
  {
    error: DELIVERY_ERRORS.tooLarge,
    words: 'the body is above the limit of the service',
    mend: 'raise BODY_LIMIT_BYTES of the service if senders have larger bodies',
  },
  {
    error: DELIVERY_ERRORS.unavailable,
    words: 'Tallyhook cannot record deliveries now',
    mend: 'its Postgres is away or slow, or there is too much load: /readyz and the log of the service say which. Senders send again',
  },
];

/** Of something in front of Tallyhook, or in its place. */
function mendOther(status: number): string {
  if (status < 300)
    return 'another service, or a page of the proxy, has this address: check host, port and path';
  if (status === 401) return 'let POST requests to this path pass without a sign-in at the proxy';
  if (status === 403) return 'a firewall or proxy refuses it: let POST requests to this path pass';
  if (status === 404) return 'check host, port and path, and that the proxy passes the path on unchanged';
  if (status === 413) return 'raise the limit of the proxy in front (nginx: client_max_body_size)';
  if (status === 429) return 'a proxy limits the rate of requests: raise its limit for this path';
  if (status >= 500)
    return 'a proxy answers for the service: check that the service runs, and the address that the proxy passes requests to';
  return 'a firewall or proxy refuses it, or another service has this address: check host, port and path, and the rules of the proxy';
}

const QUOTE_WIDTH = 80;

/** The text of somebody else: in one line, and short. */
function quote({ text }: Given): string {
  const line = clean(text.replaceAll(/\s+/g, ' ').trim());
  return line === '' ? 'no text' : `"${cut(line, QUOTE_WIDTH)}"`;
}
