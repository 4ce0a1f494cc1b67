// The client of the conversion service or of its sandbox.
// The door of this room: other rooms import from this file alone.

export { type Job, createClient } from './client.ts';
