// The documents that describe Tallyhook to others, made from the code that checks: AsyncAPI of the events.
// The door of this room: other rooms import from this file alone.

export { version } from '../version.ts';
