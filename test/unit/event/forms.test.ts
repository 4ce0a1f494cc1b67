import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventSchemas } from '../../../src/event/index.ts';
import type { Kind } from '../../../src/event/index.ts';
import { dataSchema } from '../../../src/event/index.ts';

const TITLES: Record<Kind, string> = {
  completed: 'The data of a conversion.job.completed event',
  failed: 'The data of a conversion.job.failed event',
  progress: 'The data of a conversion.job.progress event',
};

test.for(Object.keys(eventSchemas) as Kind[])(
  'contracts/events/%s.v1.json is the schema by which deliveries are understood',
  async (kind) => {
    const { $schema, ...schema } = z.toJSONSchema(eventSchemas[kind], {
      // Unknown fields pass through, so a subscriber has to expect them.
      override: ({ jsonSchema }) => {
        if (jsonSchema.type === 'object') jsonSchema.additionalProperties = true;
      },
    });
    const published = { $schema, $id: dataSchema(kind), title: TITLES[kind], ...schema };
    // After a change of the schemas: npm test -- test/unit/event/forms.test.ts --update
    await expect(`${JSON.stringify(published, null, 2)}\n`).toMatchFileSnapshot(
      `../../../contracts/events/${kind}.v1.json`,
    );
  },
);
