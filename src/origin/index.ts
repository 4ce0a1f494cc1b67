// The client of the conversion service, whoever serves it.
// The door of this room: other rooms import from this file alone.

export { type Job, createClient } from './client.ts';
