// From the ledger to the bus: one relay at a time leads and publishes the outbox, in order for each job.
// The door of this room: other rooms import from this file alone.

export { composeRelay } from './compose.ts';
