import { createDecisions, type Decisions } from '../../src/relay/decisions.ts';
import { createTestLog } from './test-log.ts';

/** Nobody watches: what was decided is known from loads alone. */
export const createUnwatchedDecisions = (): Decisions =>
  createDecisions({
    readVersion: () => Promise.reject(new Error('nobody watches')),
    isLeading: () => true,
    now: () => performance.now(),
    onLook: () => {},
    log: createTestLog().log,
  });
