// Makes the OpenAPI document from the operations that are mounted, so that it cannot describe anything else. What all
// operations have in common (token, rate limits, errors, Idempotency-Key) is described here.

import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { version } from '../../../base/version.ts';
import { ErrorAnswer } from '../operation/error.contract.ts';
import type { AnswerSpec, Operation } from '../operation/operation.ts';

export type OpenApiDocument = ReturnType<typeof createDocument>;

const ABOUT = `What happened to deliveries, events and publications, shown to operators, and replayed.

Every operation needs \`Authorization: Bearer <token>\`. A token has a role: \`viewer\` reads, \`auditor\` reads bodies and
exports too, \`operator\` also replays, releases, retries, discards and parks, \`admin\` also makes and revokes tokens. A token
can be limited to some sources: lists then show only these, and a request for another source is 403.

Times are RFC 3339 in UTC. Whole numbers of 64 bits are strings of digits. Lists are newest first. \`next_cursor\` leads to
the next page, and is valid only with the same filters. Unknown parameters are refused.`;

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

const failure = (
  id: string,
  description: string,
  headers: z.ZodObject = rateHeaders,
): ZodOpenApiResponseObject => ({
  id,
  description,
  headers,
  content: { 'application/json': { schema: ErrorAnswer } },
});

const FAILURES = {
  400: failure(
    'BadRequest',
    '`invalid_request`, `invalid_cursor` or `token_in_address`: the message says why.',
  ),
  401: failure(
    'Unauthorized',
    '`unauthorized`: no token, or one that is invalid, expired or revoked.',
    challengeHeaders,
  ),
  403: failure('Forbidden', '`forbidden`: the role or the source limit of the token does not allow this.'),
  404: failure('NotFound', '`not_found`'),
  409: failure('Conflict', '`in_progress`, `wrong_state` and others: the message says why.'),
  413: failure('TooLarge', '`payload_too_large`: the body has more than 64 KiB.'),
  415: failure('UnsupportedMediaType', '`unsupported_media_type`: the body is not `application/json`.'),
  422: failure('KeyReused', '`idempotency_key_reused`: the key was used for another request.'),
  429: failure('RateLimited', '`rate_limited`: wait until the reset.', laterHeaders),
  500: failure('Internal', '`internal`: an error of the service; its log has the details.'),
  503: failure(
    'Unavailable',
    '`query_timeout`: narrow the filter. `unavailable`: the database cannot be reached.',
    laterHeaders,
  ),
} as const;

type FailureStatus = keyof typeof FAILURES;

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
    // The format `date-time` says enough; zod adds a regular expression of 300 characters.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
    },
  });
}

function describe(operation: Operation): ZodOpenApiOperationObject {
  const { id, tag, summary, description, role, params, query } = operation;
  const isAction = operation.method === 'post';
  const body = isAction ? operation.body : undefined;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [description, `Needs the role \`${role}\`.`].filter(Boolean).join('\n\n'),
    requestParams: { ...(params && { path: params }), ...(query && { query }) },
    ...(isAction && { parameters: [idempotencyKey] }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: responsesOf(operation),
  };
}

function responsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const isAction = operation.method === 'post';
  const responses: ZodOpenApiResponsesObject = {};
  for (const [status, spec] of Object.entries(operation.answers)) {
    responses[status as `${2 | 4}${string}`] = {
      description: spec.description,
      headers: isAction ? actionHeaders : rateHeaders,
      content: contentOf(spec),
    };
  }
  const failures: FailureStatus[] = [400, 401, 403, 429, 500, 503];
  if (operation.params !== undefined || operation.namesOthers) failures.push(404);
  if (isAction) failures.push(409, 413, 415, 422);
  for (const status of failures) responses[`${status}`] ??= FAILURES[status];
  return responses;
}

function contentOf(spec: AnswerSpec): NonNullable<ZodOpenApiResponseObject['content']> {
  if ('schema' in spec) return { 'application/json': { schema: spec.schema } };
  const types = typeof spec.contentType === 'string' ? [spec.contentType] : spec.contentType;
  return Object.fromEntries(
    types.map((type) => [type, type.startsWith('text/') ? { schema: { type: 'string' as const } } : {}]),
  );
}
