// Input that is made from the OpenAPI document: of each operation, valid input is not refused but for reasons that the document
// has only in words, and invalid input is refused. Every answer is one that the document declares.

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../only-in-all.ts';
import { type JsonSchema, valuesOf } from '../../support/json-schema.ts';
import { type Document, readOpenApi } from '../../support/openapi.ts';
import { type Answer, type Operators, operators, read } from '../../support/operators.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService } from '../../support/service.ts';

/** The same in each run: what a change breaks is seen with the change. */
const SEED = 35;
const VALID_OF_EACH = runs(30);
const INVALID_OF_EACH = runs(15);

/** What only the description says, or only the rows in the database. */
const ONLY_IN_WORDS = [
  /: must be before to$/,
  /^from: must be at most 366 days before to$/,
  /^(?:step|to): (?:makes more than|leaves the year)/,
  /these are too many steps and sources/,
  /^stuck_after: only together with state=stuck$/,
  /^cursor: is not one of /,
  /must have a visible character$/,
  /must not hold control or format characters/,
  /must be at most \d+ bytes$/,
  /is one of the broker’s own$/,
  /must be the number of an entry$/,
  /must be in the future$/,
];

type Parameter = {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
};
type Described = {
  readonly parameters?: readonly (Parameter & { readonly schema: JsonSchema })[];
  readonly requestBody?: {
    readonly content: { readonly 'application/json': { readonly schema: JsonSchema } };
  };
};
type Input = { readonly path: object; readonly query: object; readonly body: unknown };

/** One schema for the whole input, so that one answer says whether it is valid. */
function inputOf({ parameters = [], requestBody }: Described): JsonSchema {
  const placed = (place: Parameter['in']) => {
    const found = parameters.filter((parameter) => parameter.in === place);
    return {
      type: 'object',
      properties: Object.fromEntries(found.map(({ name, schema }) => [name, schema])),
      required: found.filter(({ required = false }) => required).map(({ name }) => name),
      additionalProperties: false,
    };
  };
  const body = requestBody?.content['application/json'].schema;
  return {
    type: 'object',
    properties: { path: placed('path'), query: placed('query'), ...(body && { body }) },
    required: ['path', 'query', ...(body ? ['body'] : [])],
  };
}

/** Some make an address that leads nowhere, or is too long for a request. */
const REFUSALS = [400, 404, 431];

/** Each finds something to make worse, or leaves the input as it is. */
const FAULTS: readonly ((input: Input) => Input)[] = [
  (input) => ({ ...input, query: { ...input.query, nonsense: '1' } }),
  (input) => ({ ...input, query: mapValues(input.query, () => '\0') }),
  (input) => ({ ...input, query: mapValues(input.query, () => '') }),
  (input) => ({ ...input, query: mapValues(input.query, () => 'x'.repeat(2_000)) }),
  (input) => ({ ...input, query: {} }),
  (input) => ({ ...input, body: isObject(input.body) ? { ...input.body, nonsense: 1 } : input.body }),
  (input) => ({ ...input, body: isObject(input.body) ? {} : input.body }),
  (input) => ({ ...input, body: isObject(input.body) ? mapValues(input.body, () => null) : input.body }),
  (input) => ({ ...input, body: isObject(input.body) ? mapValues(input.body, () => '\0') : input.body }),
  (input) => ({ ...input, body: isObject(input.body) ? mapValues(input.body, () => -1) : input.body }),
  (input) => ({ ...input, body: [] }),
];

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const mapValues = (object: object, to: () => unknown) =>
  Object.fromEntries(Object.keys(object).map((key) => [key, to()]));

/** The answer; of one that has no end, its head. */
async function send(
  caller: Operators,
  operation: string,
  { path, query, body }: Input,
): Promise<Answer<unknown>> {
  const [method = '', template = ''] = operation.split(' ');
  const address = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((path as Record<string, unknown>)[name])),
  );
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const gone = new AbortController();
  const response = await caller.fetch(`${address}?${search.toString()}`, {
    method,
    signal: gone.signal,
    ...(method === 'POST' && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
  });
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return read(response);
  gone.abort();
  return { status: response.status, headers: response.headers, body: undefined, text: '' };
}

test('what the document allows is not refused, what it forbids is, and every answer is declared', async () => {
  await using service = await startTestService();
  const admin = await operators(service);
  for (const job of [newJobId(), newJobId()]) await deliver(service.webhooks, completed(job));
  const openApi = await readOpenApi(admin);
  const ajv = new Ajv2020({ strict: false, coerceTypes: false });
  formats.default(ajv);
  ajv.addSchema(openApi.document, 'openapi');
  const schemas = (openApi.document as Document & { components: { schemas: Record<string, JsonSchema> } })
    .components.schemas;
  const resolve = (reference: string) => schemas[reference.split('/').at(-1) ?? ''] ?? {};
  const compile = (schema: JsonSchema): ValidateFunction =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')) as object);
  const faults: string[] = [];

  for (const operation of openApi.operations) {
    const [method = '', path = ''] = operation.split(' ');
    const described = openApi.document.paths[path]?.[method.toLowerCase()] as Described;
    const schema = inputOf(described);
    const isValid = compile(schema);
    const inputs = valuesOf(schema, resolve, isValid) as fc.Arbitrary<Input>;
    const tell = (input: Input, answer: Answer<unknown>) =>
      `${operation} ${JSON.stringify(input)}: ${answer.status} ${answer.text.slice(0, 300)}`;

    for (const input of fc.sample(inputs, { numRuns: VALID_OF_EACH, seed: SEED })) {
      const answer = await send(admin, operation, input);
      faults.push(...openApi.faultsOf(operation, answer));
      const { message = '' } = (answer.body ?? {}) as { message?: string };
      const isTaken = answer.status < 300 || answer.status === 404 || answer.status === 409;
      if (!isTaken && !(answer.status === 400 && isInWords(operation, message)))
        faults.push(`refused: ${tell(input, answer)}`);
    }
    const invalid = fc
      .tuple(inputs, fc.constantFrom(...FAULTS))
      .map(([input, worsen]) => worsen(input))
      .filter((input) => !isValid(input));
    for (const input of fc.sample(invalid, { numRuns: INVALID_OF_EACH, seed: SEED })) {
      const answer = await send(admin, operation, input);
      faults.push(...openApi.faultsOf(operation, answer));
      if (!REFUSALS.includes(answer.status)) faults.push(`taken: ${tell(input, answer)}`);
    }
  }

  expect(faults).toEqual([]);
});

/** Of an export, each filter has the form that it has in its list: the document says so in words alone. */
const OF_A_FILTER = /^(?:unknown parameter of the list [\w-]+|[a-z_]+): /;

const isInWords = (operation: string, message: string) =>
  message
    .split('; ')
    .every(
      (part) =>
        ONLY_IN_WORDS.some((words) => words.test(part)) ||
        (operation === 'GET /export' && OF_A_FILTER.test(part)),
    );
