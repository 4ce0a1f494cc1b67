// What of the relay's protocol is looked at: the instances in which all is kept, and for each rule of docs/relay.md the instance in
// which something breaks without it.

import type { Property, Settings, Violation } from './spin.ts';

export type Instance = {
  readonly name: string;
  readonly settings: Settings;
  readonly property: Property;
  /** `npm test` has it. The others are for `npm run model`. */
  readonly isSmall?: boolean;
};

const safety = (name: string, settings: Settings, isSmall = false): Instance => ({
  name,
  settings,
  property: 'safety',
  isSmall,
});
const drained = (name: string, settings: Settings, isSmall = false): Instance => ({
  name: `${name}, until all is drained`,
  settings,
  property: 'drained',
  isSmall,
});

/** One class of faults at a time; then pairs. Those that take long come last. */
export const INSTANCES: readonly Instance[] = [
  safety('no fault', { events: 3 }, true),
  safety('a lost lease', { events: 2, leases: 1 }, true),
  safety('a crash', { events: 2, crashes: 1 }, true),
  safety('an event is parked', { events: 2, parks: 1 }, true),
  drained('no fault', { events: 2 }, true),
  drained('a nack', { events: 2, nacks: 1 }, true),
  safety('a lost connection', { events: 3, connections: 1 }),
  safety('a nack', { events: 3, nacks: 1 }),
  safety('a write without a result', { events: 3, writeFailures: 1 }),
  safety('results without a result', { events: 3, settleFailures: 1 }),
  safety('a load leaves something', { events: 3, bounds: 1 }),
  safety('no room', { events: 3, rooms: 1 }),
  safety('a crash, three events', { events: 3, crashes: 1 }),
  safety('an event is parked, three events', { events: 3, parks: 1 }),
  safety('two lost leases, one event', { events: 1, leases: 2 }),
  safety('an event is parked and retried', { events: 2, parks: 1, retries: 1 }),
  safety('an event is parked and discarded', { events: 2, parks: 1, discards: 1 }),
  safety('an event is parked, and a lost connection', { events: 2, parks: 1, connections: 1 }),
  safety('an event is parked, and no room', { events: 2, parks: 1, rooms: 1 }),
  safety('a nack and results without a result', { events: 2, nacks: 1, settleFailures: 1 }),
  safety('a nack and a crash', { events: 2, nacks: 1, crashes: 1 }),
  drained('a lost connection', { events: 2, connections: 1 }),
  drained('a write without a result', { events: 2, writeFailures: 1 }),
  drained('results without a result', { events: 2, settleFailures: 1 }),
  drained('a load leaves something', { events: 2, bounds: 1 }),
  drained('no room', { events: 2, rooms: 1 }),
  drained('a crash', { events: 2, crashes: 1 }),
  drained('an event is parked', { events: 2, parks: 1 }),
  drained('a lost lease', { events: 2, leases: 1 }),
  safety('a nack and a lost lease', { events: 2, nacks: 1, leases: 1 }),
  safety('a lost lease, three events', { events: 3, leases: 1 }),
];

export type SwitchedOff = {
  /** Its number in docs/relay.md. */
  readonly rule: number;
  readonly settings: Settings;
  readonly property: Property;
  /** What breaks without it. */
  readonly breaks: Violation;
};

const breaks = (rule: number, what: Violation, settings: Settings): SwitchedOff => ({
  rule,
  settings,
  property: what === 'waits' ? 'drained' : 'safety',
  breaks: what,
});

/** Each rule that the model has, but for those that only save something. */
export const SWITCHED_OFF: readonly SwitchedOff[] = [
  breaks(3, 'order', { events: 2 }),
  breaks(4, 'order', { events: 2, nacks: 1 }),
  breaks(5, 'order', { events: 2, writeFailures: 1 }),
  breaks(6, 'order', { events: 2 }),
  breaks(7, 'order', { events: 2 }),
  breaks(8, 'order', { events: 2 }),
  breaks(9, 'order', { events: 2, rooms: 1 }),
  breaks(9, 'waits', { events: 1, rooms: 1 }),
  breaks(10, 'order', { events: 2 }),
  breaks(11, 'order', { events: 2, parks: 1 }),
  breaks(12, 'order', { events: 2, parks: 1, retries: 1 }),
  breaks(13, 'order', { events: 2, nacks: 1 }),
  breaks(14, 'order', { events: 2, rooms: 1 }),
  breaks(15, 'order', { events: 2, parks: 1 }),
  breaks(16, 'order', { events: 2, writeFailures: 1 }),
  breaks(21, 'parked', { events: 2, parks: 1 }),
  breaks(22, 'parked', { events: 2, parks: 1 }),
  breaks(23, 'parked', { events: 2, parks: 1 }),
  breaks(24, 'order', { events: 2, parks: 1 }),
  breaks(25, 'parked', { events: 2, parks: 1 }),
  breaks(26, 'parked', { events: 2, parks: 1, connections: 1 }),
  breaks(28, 'order', { events: 2, nacks: 1 }),
  breaks(29, 'copies', { events: 2 }),
  breaks(30, 'copies', { events: 2, leases: 1 }),
  breaks(31, 'copies', { events: 1, leases: 2 }),
  breaks(32, 'order', { events: 2, nacks: 1 }),
  breaks(33, 'order', { events: 2, nacks: 1 }),
  breaks(34, 'order', { events: 2, nacks: 1 }),
  breaks(35, 'order', { events: 2, nacks: 1 }),
  breaks(36, 'order', { events: 3, nacks: 1 }),
  breaks(37, 'copies', { events: 2 }),
  breaks(38, 'copies', { events: 2, nacks: 1, settleFailures: 1 }),
  breaks(39, 'copies', { events: 2, settleFailures: 1 }),
  breaks(40, 'order', { events: 2, nacks: 1, leases: 1 }),
  breaks(41, 'copies', { events: 2, parks: 1, retries: 1 }),
];

/** Rules of the model without which nothing breaks in any instance. docs/relay.md says what they serve. */
export const SAVING: readonly number[] = [19, 20, 27];
