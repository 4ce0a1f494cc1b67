// The OpenAPI document of the intake: the webhook endpoint as senders see it. Statuses and error codes come from the tables that
// the intake answers by, and the forms of bodies from the schemas that it checks with.

import { type Kind, KINDS, notificationForm } from '../event/index.ts';
import { parseJson } from '../base/json/json.ts';
import { SOURCE_NAME } from '../base/text/source-name.ts';
import { sampleNotification } from '../testing/index.ts';
import { version } from '../base/version.ts';
import { embedded } from './embedded.ts';
import { answerSchemas, responseRefs, responses } from './intake-answers.ts';
import { aboutIntake, type IntakeLimits } from './intake-words.ts';

export type IntakeDocument = { readonly openapi: '3.1.0'; readonly [field: string]: unknown };

/** Of each kind: the value of `status` that tells it, and the name of its form. */
const NOTIFICATIONS = {
  completed: { status: 'completed', form: 'CompletedNotification' },
  failed: { status: 'failed', form: 'FailedNotification' },
  progress: { status: 'processing', form: 'ProgressNotification' },
} as const satisfies Record<Kind, unknown>;

const refTo = (kind: Kind) => `#/components/schemas/${NOTIFICATIONS[kind].form}`;

/** Made anew at each call; the same for the same limits. */
export function createIntakeDocument(limits: IntakeLimits): IntakeDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tallyhook for senders',
      version,
      description: aboutIntake(limits),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      {
        url: 'https://{host}',
        description: 'Your proxy, which speaks TLS. Tallyhook itself speaks HTTP.',
        variables: { host: { default: 'localhost' } },
      },
    ],
    security: [],
    tags: [{ name: 'webhooks' }],
    paths: {
      '/webhooks': { post: operation('deliver', 'Send a notification from the source `default`') },
      '/webhooks/{source}': {
        post: operation('deliverFromSource', 'Send a notification from a named source', 'Source'),
      },
    },
    components: {
      parameters: {
        Signature: {
          name: 'X-Service-Signature',
          in: 'header',
          required: true,
          description: 'HMAC-SHA256 of the raw body, with the signing secret as the key.',
          schema: { type: 'string', pattern: '^sha256=[0-9a-f]{64}$' },
        },
        Source: {
          name: 'source',
          in: 'path',
          required: true,
          description: 'The name of the source. An unknown one is answered as a wrong signature is: 401.',
          schema: { type: 'string', pattern: SOURCE_NAME.source },
          example: 'team-a',
        },
      },
      requestBodies: { Notification: notification() },
      responses: responses(),
      schemas: {
        ...Object.fromEntries(
          KINDS.map((kind) => [NOTIFICATIONS[kind].form, embedded(notificationForm(kind))]),
        ),
        ...answerSchemas,
      },
    },
  };
}

const operation = (operationId: string, summary: string, ...parameters: readonly string[]) => ({
  operationId,
  tags: ['webhooks'],
  summary,
  parameters: [...parameters, 'Signature'].map((name) => ({ $ref: `#/components/parameters/${name}` })),
  requestBody: { $ref: '#/components/requestBodies/Notification' },
  responses: responseRefs(),
});

const notification = () => ({
  required: true,
  description: 'What becomes an event. See the description of this document for other bodies.',
  content: {
    'application/json': {
      schema: {
        oneOf: KINDS.map((kind) => ({ $ref: refTo(kind) })),
        discriminator: {
          propertyName: 'status',
          mapping: Object.fromEntries(KINDS.map((kind) => [NOTIFICATIONS[kind].status, refTo(kind)])),
        },
      },
      examples: Object.fromEntries(
        KINDS.map((kind) => {
          const body = sampleNotification({ kind, job: 'job_7f3a', percent: 45 });
          return [kind, { value: parseJson(body) }];
        }),
      ),
    },
  },
});
