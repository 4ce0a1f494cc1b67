// The test files that `npm test` leaves out, each with the reason. `npm run test:all`, which CI runs, has them all, and so has
// `npm test -- <path>`.

export const ONLY_IN_ALL: Readonly<Record<string, string>> = {
  'test/torture/torture.test.ts':
    'two minutes; a short run, in torture-short.test.ts, has the most telling faults',
};
