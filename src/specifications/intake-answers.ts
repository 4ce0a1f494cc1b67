// The answers of the intake, for its OpenAPI document: one response for each status, with all its causes. Statuses and codes come
// from the tables that the intake answers by; a new entry there needs words here.

import { DELIVERY_ERRORS, OUTCOME_STATUS, RETRY_AFTER_S } from '../base/delivery-answers.ts';
import { HTTP_ERRORS } from '../http/index.ts';

type Outcome = keyof typeof OUTCOME_STATUS;

const OUTCOMES: Readonly<Record<Outcome, string>> = {
  accepted: 'a new event. It is recorded, and will be published.',
  quarantined:
    'authentic and kept, but not published: the `status` is unknown, or fields break the form. An operator decides. `event_id` is null.',
  duplicate: 'the event is known, with the same content. Nothing changes.',
  conflict:
    'the event is known, with other content. The first content stays; this body is kept for operators.',
};

const CAUSES: Readonly<Record<keyof typeof DELIVERY_ERRORS | keyof typeof HTTP_ERRORS, string>> = {
  malformed:
    'the signature is right, but the body is no JSON object in UTF-8 with a usable `job_id` and `status`. The body is kept. The same bytes get the same answer again.',
  incomplete: 'the body did not arrive whole. Send the same bytes again.',
  badRequest:
    'the request is no valid HTTP, or ended before it was whole, or its path is not percent-encoded correctly. Send the same bytes again; if the answer is the same, correct the request.',
  unauthorized:
    'the signature is missing or wrong, or the source is unknown. The answer is the same for every cause; operators can see the cause.',
  notFound: 'another path than `/webhooks` and `/webhooks/{source}`. A slash at the end makes another path.',
  wrongMethod: 'another method than POST.',
  noTunnel: 'CONNECT: this is no proxy.',
  late: 'the body did not arrive in time. Send the same bytes again.',
  requestTimeout:
    'the head of the request, or the request as a whole, did not arrive in time. Send the same bytes again.',
  tooLarge: 'the body is larger than the limit. The same bytes get the same answer again.',
  encoded: 'the request has a `Content-Encoding`. The signature is over the raw bytes: send these.',
  expectationFailed: 'the request has another `Expect` than `100-continue`.',
  headersTooLarge: 'the headers are larger than the limit.',
  unavailable:
    'the delivery could not be recorded in time, or too many are arriving. Send the same bytes again after `Retry-After`. If the first one was recorded all the same, the answer is then `duplicate`.',
};

/** The name of each response in the document. */
const NAMES: Readonly<Record<number, string>> = {
  200: 'Known',
  202: 'Taken',
  400: 'BadRequest',
  401: 'Unauthorized',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  408: 'Timeout',
  413: 'TooLarge',
  415: 'Encoded',
  417: 'ExpectationFailed',
  431: 'HeadersTooLarge',
  503: 'Unavailable',
};

const HEADERS: Readonly<Record<number, object>> = {
  405: { Allow: { description: 'The methods of this path.', schema: { type: 'string' } } },
  503: {
    'Retry-After': {
      description: 'Seconds after which another try is worth it.',
      schema: { type: 'integer', const: RETRY_AFTER_S },
    },
  },
};

type Cause = { readonly status: number; readonly code: string; readonly words: string };

const outcomes: readonly Cause[] = Object.entries(OUTCOME_STATUS).map(([outcome, status]) => ({
  status,
  code: outcome,
  words: OUTCOMES[outcome as Outcome],
}));

const errors: readonly Cause[] = [
  ...Object.entries(DELIVERY_ERRORS).map(([cause, { httpStatus, error }]) => ({
    status: httpStatus,
    code: error,
    words: CAUSES[cause as keyof typeof DELIVERY_ERRORS],
  })),
  ...Object.entries(HTTP_ERRORS).map(([cause, { status, error }]) => ({
    status,
    code: error,
    words: CAUSES[cause as keyof typeof HTTP_ERRORS],
  })),
];

/** For `components.responses`. */
export const responses = (): object =>
  Object.fromEntries([
    ...statuses().map((status) => [nameOf(status), responseOf(status)]),
    ['Other', { description: OTHER, content: json({ $ref: '#/components/schemas/Error' }) }],
  ]);

/** For each operation. */
export const responseRefs = (): object =>
  Object.fromEntries([
    ...statuses().map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }]),
    ['default', { $ref: '#/components/responses/Other' }],
  ]);

const OTHER =
  'Anything else: `internal` with 500, or an answer of a proxy in front, which can have another body. After a 5xx or a 429, send the same bytes again, later. After any other, correct the request, the address or the proxy first.';

/** For `components.schemas`. */
export const answerSchemas = {
  Outcome: {
    type: 'object',
    description: 'The delivery is recorded.',
    required: ['outcome', 'event_id'],
    properties: {
      outcome: { type: 'string', enum: Object.keys(OUTCOME_STATUS) },
      event_id: {
        type: ['string', 'null'],
        description:
          'The id of the event: `<source>:<job id>:<status>`, for progress also `:<percentage>`. Subscribers get the same id.',
      },
    },
  },
  Error: {
    type: 'object',
    description: 'The delivery is not recorded as an event.',
    required: ['error', 'message'],
    properties: {
      error: { type: 'string', description: 'A short code that programs can rely on.' },
      message: { type: 'string', description: 'For people; may change.' },
    },
  },
};

const statuses = (): readonly number[] =>
  [...new Set([...outcomes, ...errors].map(({ status }) => status))].toSorted((one, other) => one - other);

function nameOf(status: number): string {
  const name = NAMES[status];
  if (name === undefined) throw new Error(`the response ${status} has no name`);
  return name;
}

function responseOf(status: number): object {
  const isOutcome = outcomes.some((outcome) => outcome.status === status);
  const causes = (isOutcome ? outcomes : errors).filter((cause) => cause.status === status);
  const codes = [...new Set(causes.map(({ code }) => code))];
  return {
    description: causes.map(({ code, words }) => `- \`${code}\`: ${words}`).join('\n'),
    ...(HEADERS[status] === undefined ? {} : { headers: HEADERS[status] }),
    content: json({
      $ref: `#/components/schemas/${isOutcome ? 'Outcome' : 'Error'}`,
      // Siblings of $ref count since JSON Schema 2019-09, which OpenAPI 3.1 uses.
      properties: { [isOutcome ? 'outcome' : 'error']: { enum: codes } },
    }),
  };
}

const json = (schema: object) => ({ 'application/json': { schema } });
