// A subscriber, as a team of its own would write it: it knows the bus alone.
// The door of this room: other rooms import from this file alone.

export { type ConnectionChange, type ReceivedEvent, subscribe } from './subscribe.ts';
