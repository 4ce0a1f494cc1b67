// Knows before the sender does: looks at the conditions, and writes incidents and what is to be told of them.
// The door of this room: other rooms import from this file alone.

export { type ConditionNow } from './conditions-now.ts';
export type { Channel } from './incidents.ts';
export { composeWatch, WATCH_TIMING, type Watching, type WatchTiming } from './compose.ts';
