// The form of every error answer, and the codes that there are.

import { z } from 'zod';

/** By the status of the answer. The errors of HTTP itself (405, 408, 417, 431) can come before it is known which operation is meant. */
export const ERROR_CODES = {
  400: ['invalid_request', 'invalid_cursor', 'token_in_address', 'bad_request'],
  401: ['unauthorized'],
  403: ['forbidden', 'cross_origin'],
  404: ['not_found', 'body_not_kept', 'no_conflict'],
  405: ['method_not_allowed'],
  408: ['request_timeout'],
  409: [
    'in_progress',
    'wrong_state',
    'no_such_queue',
    'too_many_codes',
    'too_many_replays',
    'too_many_tokens',
  ],
  413: ['payload_too_large'],
  415: ['unsupported_media_type'],
  417: ['expectation_failed'],
  422: ['idempotency_key_reused'],
  429: ['rate_limited', 'export_busy', 'too_many_listeners'],
  431: ['headers_too_large'],
  500: ['internal'],
  503: ['query_timeout', 'unavailable', 'export_busy', 'too_many_listeners'],
} as const;

export type ErrorStatus = keyof typeof ERROR_CODES;
type CodeOf<Status extends ErrorStatus> = (typeof ERROR_CODES)[Status][number];
export type ErrorCode = CodeOf<ErrorStatus>;

/** A status with one of its codes, and the message. */
export type Fault = {
  [Status in ErrorStatus]: [status: Status, code: CodeOf<Status>, message: string];
}[ErrorStatus];

export const ErrorAnswer = z
  .object({
    error: z
      .enum([...new Set(Object.values(ERROR_CODES).flat())])
      .meta({ description: 'A short code that programs can rely on. Newer versions may have more.' }),
    message: z.string().meta({ description: 'For people; may change.' }),
  })
  .meta({ id: 'Error', description: 'Every answer that is no success.' });
