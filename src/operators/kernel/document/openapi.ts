// Makes the OpenAPI document from the operations that are mounted, so that it cannot describe anything else. What all
// operations have in common (token, rate limits, errors, Idempotency-Key) is described here.

import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiRequestBodyObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { version } from '../../../base/version.ts';
import { TIME_FORM } from '../list/filters.contract.ts';
import { ERROR_CODES, ErrorAnswer, type ErrorStatus } from '../operation/error.contract.ts';
import type { Action, AnswerSpec, Operation } from '../operation/operation.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

const ABOUT = `What happened to deliveries, events and publications, shown to operators, and replayed.

Every operation needs \`Authorization: Bearer <token>\`. A token has a role: \`viewer\` reads, \`auditor\` reads bodies and
exports too, \`operator\` also replays, releases, retries, discards and parks, \`admin\` also makes and revokes tokens. A token
can be limited to some sources: lists then show only these, and a request for another source is 403.

Times are RFC 3339 in UTC. Whole numbers of 64 bits are strings of digits. Lists are newest first where they do not say otherwise. \`next_cursor\` leads to
the next page, and is valid only with the same filters. Unknown parameters are refused, and so are members of a body that
are given twice. A text holds no NUL and no unpaired surrogate. HEAD is answered as GET, without the body.`;

const header = (id: string, description: string) => z.string().meta({ description, header: { id } });

const rateHeaders = z.object({
  'X-RateLimit-Limit': header('RateLimitLimit', 'Requests that the token may make in a minute.'),
  'X-RateLimit-Remaining': header('RateLimitRemaining', 'How many are left.'),
  'X-RateLimit-Reset': header('RateLimitReset', 'When the minute is over, in seconds since the epoch.'),
});

const laterHeaders = rateHeaders.extend({
  'Retry-After': header('RetryAfter', 'Seconds after which another try is worth it.'),
});

const challengeHeaders = rateHeaders.extend({
  'WWW-Authenticate': z
    .literal('Bearer')
    .meta({ description: 'What is asked for (RFC 9110, 11.6.1).', header: { id: 'WwwAuthenticate' } }),
});

const allowHeaders = rateHeaders.extend({
  Allow: header('Allow', 'The methods that there are at this address.'),
});

const actionHeaders = rateHeaders.extend({
  'Idempotency-Replayed': z
    .literal('true')
    .optional()
    .meta({
      description: 'The request was answered before; this is that answer again.',
      header: { id: 'IdempotencyReplayed' },
    }),
});

const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .optional()
  .meta({
    description:
      'Printable ASCII of your choice. The same request under the same key acts once and gets the same answer for 24 hours.',
    param: { id: 'IdempotencyKey', in: 'header', name: 'Idempotency-Key' },
  });

/** Of each status that is no success: its name in the document, when it comes, and its headers. */
const FAILURES = {
  400: ['BadRequest', 'the message says why.'],
  401: ['Unauthorized', 'no token, or one that is invalid, expired or revoked.', challengeHeaders],
  403: [
    'Forbidden',
    'the role or the source limit of the token does not allow this; or a page of another site asks.',
  ],
  404: ['NotFound', 'there is no such thing, or it is no longer kept.'],
  405: ['MethodNotAllowed', 'another method is asked for than `Allow` names.', allowHeaders],
  408: ['RequestTimeout', 'the request did not arrive in time.'],
  409: ['Conflict', 'the state of things does not allow this: the message says why.'],
  413: ['TooLarge', 'the body has more than 64 KiB.'],
  415: ['UnsupportedMediaType', 'the body is not `application/json`.'],
  417: ['ExpectationFailed', 'something else is expected than `100-continue`.'],
  422: ['KeyReused', 'the key was used for another request.'],
  429: ['TooMany', 'too many requests, exports or listeners of one token.', laterHeaders],
  431: ['HeadersTooLarge', 'the headers are too large.'],
  500: ['Internal', 'an error of the service; its log has the details.'],
  503: [
    'Unavailable',
    'the database is away or took too long, or all places are taken: try again.',
    laterHeaders,
  ],
} as const satisfies Record<ErrorStatus, readonly [id: string, when: string, headers?: z.ZodObject]>;

/** Each one once: by its id the document names it wherever it is an answer. */
const failures: Readonly<Record<string, ZodOpenApiResponseObject>> = Object.fromEntries(
  Object.entries(FAILURES).map(([status, [id, when, headers = rateHeaders]]) => {
    const codes = ERROR_CODES[Number(status) as ErrorStatus].map((code) => `\`${code}\``).join(', ');
    const content = { 'application/json': { schema: ErrorAnswer } };
    return [status, { id, description: `${codes}: ${when}`, headers, content }];
  }),
);

const OF_ALL: readonly ErrorStatus[] = [400, 401, 403, 405, 408, 417, 429, 431, 500, 503];
const OF_ACTIONS: readonly ErrorStatus[] = [409, 413, 415, 422];

export function createOpenApiDocument(operations: readonly Operation[]): OpenApiDocument {
  const paths: ZodOpenApiPathsObject = {};
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: describe(operation) };
  }
  const document: ZodOpenApiObject = {
    openapi: '3.1.0',
    info: {
      title: 'Tallyhook for operators',
      version,
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ token: [] }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token from `tallyhook tokens create`: `thk_live_…` or `thk_test_…`.',
        },
      },
    },
  };
  return createDocument(document, {
    override: ({ jsonSchema }) => {
      // The format `date-time` says enough; zod adds a regular expression of 300 characters.
      if (jsonSchema.format === 'date-time' && jsonSchema.pattern !== TIME_FORM) delete jsonSchema.pattern;
      // Classes of Unicode's properties are for some languages alone. The description says it in words.
      if (jsonSchema.pattern?.includes('\\p{')) delete jsonSchema.pattern;
    },
  });
}

function describe(operation: Operation): ZodOpenApiOperationObject {
  const { id, tag, summary, description, role, params, query } = operation;
  const isAction = operation.method === 'post';
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [description, `Needs the role \`${role}\`.`].filter(Boolean).join('\n\n'),
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    ...(isAction && { parameters: [idempotencyKey], requestBody: bodyOf(operation) }),
    responses: responsesOf(operation),
  };
}

/** What an action that takes nothing takes. */
const Nothing = z.strictObject({}).meta({ id: 'Nothing', description: 'No body, or an empty object.' });

const bodyOf = ({ body }: Action): ZodOpenApiRequestBodyObject => ({
  required: body !== undefined,
  content: { 'application/json': { schema: body ?? Nothing } },
});

function responsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const isAction = operation.method === 'post';
  const responses: ZodOpenApiResponsesObject = {};
  for (const [status, spec] of Object.entries(operation.answers)) {
    responses[status as `2${string}`] = {
      description: spec.description,
      headers: isAction ? actionHeaders : rateHeaders,
      content: contentOf(spec),
    };
  }
  const mayMiss = operation.params !== undefined || operation.namesOthers;
  for (const status of [...OF_ALL, ...(mayMiss ? ([404] as const) : []), ...(isAction ? OF_ACTIONS : [])])
    Object.assign(responses, { [status]: failures[status] });
  return responses;
}

function contentOf(spec: AnswerSpec): NonNullable<ZodOpenApiResponseObject['content']> {
  if ('schema' in spec) return { 'application/json': { schema: spec.schema } };
  const types = typeof spec.contentType === 'string' ? [spec.contentType] : spec.contentType;
  return Object.fromEntries(
    types.map((type) => [type, type.startsWith('text/') ? { schema: { type: 'string' as const } } : {}]),
  );
}
