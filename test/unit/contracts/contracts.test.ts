// What is committed in contracts/ is what the code makes, what was released is as it was, and no form breaks who relied on it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, test } from 'vitest';
import { allBreaks, CONTRACTS, listMakings } from '../../../scripts/contracts/documents.ts';
import { filesOf, FORMS } from '../../../scripts/contracts/forms.ts';
import { faultsOf, unreleased } from '../../../scripts/contracts/released.ts';
import { dataSchema, KINDS } from '../../../src/event/index.ts';

const files = FORMS.flatMap((form) => filesOf(form, CONTRACTS));

describe('contracts/', () => {
  test('no form breaks those who rely on an earlier one of its major version', () => {
    expect(allBreaks()).toEqual([]);
  });

  test.for(listMakings())('$path is what the code makes: if not, run npm run contracts', async (making) => {
    expect(readFileSync(join(CONTRACTS, making.path), 'utf8')).toBe(await making.make());
  });

  test('no released file was changed or removed', () => {
    expect(faultsOf(CONTRACTS)).toEqual([]);
  });

  test('every form and example is released: if not, run npm run contracts -- --release', () => {
    expect(unreleased(CONTRACTS)).toEqual([]);
  });
});

describe('the forms', () => {
  test('are strict JSON Schemas of draft 2020-12, each with an $id of its own', () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: false });
    addFormats.default(ajv);
    for (const { form } of files) {
      expect(form['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
      expect(ajv.validateSchema(form, true)).toBe(true);
      ajv.compile(form);
    }
    expect(new Set(files.map(({ form }) => form.$id)).size).toBe(files.length);
  });

  test('the $id of the first form of the data is the dataschema of its events', () => {
    for (const kind of KINDS) {
      const [first] = files.filter(({ path }) => path === `events/${kind}.v1.json`);
      expect(first?.form.$id).toBe(dataSchema(kind));
    }
  });
});
