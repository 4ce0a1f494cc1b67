import { createDecisions, type Decisions } from '../../src/relay/decisions.ts';
import { createTestLog } from './test-log.ts';

/** Their version is read only by who notes it: no look is answered. */
export const createTestDecisions = (now = () => performance.now()): Decisions =>
  createDecisions({
    readVersion: () => new Promise(() => {}),
    isLeading: () => true,
    now,
    onLook: () => {},
    log: createTestLog().log,
  });
