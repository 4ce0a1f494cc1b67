// The API's OpenAPI document as tests use it: the list of operations, and whether an answer matches its description.

import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Answer, Operators } from './operators.ts';

type Described = { $ref?: string; content?: Record<string, { schema?: object }>; headers?: object };
export type Document = {
  readonly openapi: string;
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { operationId: string; responses: Record<string, Described> }>>>
  >;
  readonly components: { readonly responses: Readonly<Record<string, Described>> };
};

type OpenApi = {
  readonly document: Document;
  /** `GET /jobs/{source}/{job_id}` */
  readonly operations: readonly string[];
  /** How this answer differs from what the document describes for the operation; empty if it does not. */
  readonly faultsOf: (
    operation: string,
    answer: Pick<Answer<unknown>, 'status' | 'headers' | 'body'>,
  ) => string[];
};

export async function readOpenApi(caller: Operators): Promise<OpenApi> {
  const { body } = await caller.get<Document>('/openapi.json');
  return openApiOf(body);
}

export function openApiOf(document: Document): OpenApi {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema(document, 'openapi');

  function faultsOf(
    operation: string,
    { status, headers, body }: Pick<Answer<unknown>, 'status' | 'headers' | 'body'>,
  ): string[] {
    const [method = '', path = ''] = operation.split(' ');
    const verb = method.toLowerCase();
    const found = document.paths[path]?.[verb]?.responses[status];
    if (found === undefined) return [`${operation}: status ${status} is not in the document`];
    const reference = found.$ref?.split('/').at(-1);
    const spec = reference === undefined ? found : document.components.responses[reference];
    const pointer =
      reference === undefined
        ? `/paths/${escape(path)}/${verb}/responses/${status}`
        : `/components/responses/${escape(reference)}`;
    const faults = Object.keys(spec?.headers ?? {})
      .filter((name) => name !== 'Idempotency-Replayed' && !headers.has(name))
      .map((name) => `${operation}: ${status} without ${name}`);
    const type = headers.get('content-type') ?? '';
    const content = Object.entries(spec?.content ?? {}).find(([name]) => isType(type, name));
    if (content === undefined) return [...faults, `${operation}: ${status} is "${type}"`];
    const [name, { schema }] = content;
    if (name !== 'application/json' || schema === undefined) return faults;
    const uri = encodeURI(`${pointer}/content/${escape(name)}/schema`);
    const validate = ajv.getSchema(`openapi#${uri}`) ?? ajv.compile({ $ref: `openapi#${uri}` });
    if (validate(body) === true) return faults;
    const errors = validate.errors ?? [];
    return [...faults, ...errors.map((error) => `${operation}: ${error.instancePath} ${error.message}`)];
  }

  return {
    document,
    faultsOf,
    operations: Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    ),
  };
}

/** For a JSON pointer (RFC 6901). */
const escape = (text: string) => text.replaceAll('~', '~0').replaceAll('/', '~1');

/** Parameters such as a charset may follow. */
const isType = (given: string, wanted: string) => given === wanted || given.startsWith(`${wanted};`);
