// From the ledger to the bus: one leader at a time publishes the outbox, in order for a job.
// The door of this room: other rooms import from this file alone.

export { composeRelay } from './compose.ts';
