// Which reason of a refused delivery a caller sees.

import { expect, test } from 'vitest';
import { type AuditedDelivery, shownTo } from '../../../src/operators/deliveries/queries.ts';

const NO_SOURCE = 'no source of this name is set up';
const refused = (fields: Partial<AuditedDelivery>) => fields as AuditedDelivery;

test.for([
  ['an unknown source that another one signed', NO_SOURCE, `${NO_SOURCE}; signed with the secret of team-b`],
  [
    'a known source that another one signed',
    'the signature does not match',
    'signed with the secret of another source: team-b',
  ],
] as const)('%s: those who see both are told both', ([, reason, told]) => {
  const delivery = refused({ reason, signed_by: 'team-b' });
  expect(shownTo(null, delivery).reason).toBe(told);
  expect(shownTo(['team-b', 'unknown'], delivery).reason).toBe(told);
  expect(shownTo(['team-a'], delivery).reason).toBe(reason);
  expect(shownTo(null, { ...delivery, signed_by: null }).reason).toBe(reason);
});
