import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyRing, verifySignature } from '../../../src/intake/signature.ts';
import { secretOf } from '../../support/records.ts';
import { runs } from '../../only-in-all.ts';

const ring = createKeyRing(new Map([['default', [secretOf('a-secret-of-enough-bytes-for-it')]]]));

test('property: no text at all is taken for a signature by chance', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^sha256=[0-9a-f]{64}$/)),
      (header) => {
        expect(verifySignature(ring, 'default', header, randomBytes(20))).toBeUndefined();
      },
    ),
    { numRuns: runs(50) },
  );
});
