// From a sender's socket to the ledger's statement. Verifies before it understands, and answers after the commit.
// The door of this room: other rooms import from this file alone.

export { composeIntake } from './compose.ts';
export { createSources } from './sources.ts';
