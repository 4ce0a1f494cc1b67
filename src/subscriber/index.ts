// A subscriber, as another team would write it: it knows only the bus.
// The door of this room: other rooms import from this file alone.

export { type ConnectionChange, type ReceivedEvent, subscribe } from './subscribe.ts';
