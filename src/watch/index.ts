// Watches what an operator has to know of: incidents, and the messages that tell of them.
// The door of this room: other rooms import from this file alone.

export { composeMessages, type Messages, type TestResult } from './messages/compose.ts';
