// The form of a subscriber's handlers: among its options, and alone for `deliver` of the tests, which needs no broker.

import { z } from 'zod';

export const aFunction = z.custom<never>((value) => typeof value === 'function', 'must be a function');

/** Strict: a name that is no handler's is a mistake in writing. */
export const handlersForm = z.strictObject({
  completed: aFunction.optional(),
  failed: aFunction.optional(),
  progress: aFunction.optional(),
  unknown: aFunction.optional(),
  invalid: aFunction.optional(),
});

/** Every fault, by the name of what is at fault. It quotes no value. */
export const faultsOf = ({ issues }: z.ZodError): string =>
  issues
    .map(({ path, message }) => [...(path.length > 0 ? [path.join('.')] : []), message].join(': '))
    .join('; ');
