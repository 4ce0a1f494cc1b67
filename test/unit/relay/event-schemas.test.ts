import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventSchemas } from '../../../src/ledger/understand.ts';
import type { Kind } from '../../../src/ledger/event.ts';
import { dataSchema } from '../../../src/ledger/cloud-event.ts';

const TITLES: Record<Kind, string> = {
  completed: 'The data of a conversion.job.completed event',
  failed: 'The data of a conversion.job.failed event',
  progress: 'The data of a conversion.job.progress event',
};

test.for(Object.keys(eventSchemas) as Kind[])(
  'docs/schemas/%s.v1.json is the schema by which deliveries are understood',
  async (kind) => {
    const { $schema, ...schema } = z.toJSONSchema(eventSchemas[kind], {
      // Unknown fields pass through, so a subscriber has to expect them.
      override: ({ jsonSchema }) => {
        if (jsonSchema.type === 'object') jsonSchema.additionalProperties = true;
      },
    });
    const published = { $schema, $id: dataSchema(kind), title: TITLES[kind], ...schema };
    // After a change of the schemas: npm test -- test/unit/relay/event-schemas.test.ts --update
    await expect(`${JSON.stringify(published, null, 2)}\n`).toMatchFileSnapshot(
      `../../../docs/schemas/${kind}.v1.json`,
    );
  },
);
