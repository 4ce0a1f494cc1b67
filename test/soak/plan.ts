// What a soak sends at each place of its plan: a notification's number, and whether it is new. Pure: nothing is kept for
// each delivery, so an hour of them takes no memory. The event on the bus is recognized by the same number.

/** In each round one delivery is wrongly signed, one has an unknown status, and every fiftieth is a copy. */
const ROUND = 1_000;
const TAMPERED_AT = 499;
const UNKNOWN_AT = 999;
const COPY_EVERY = 50;
const COPY_AT = 20;
const FRESH_IN_ROUND = ROUND - 2 - ROUND / COPY_EVERY;

/** So far back that the first copy was answered, if no fault is at work. */
const COPY_OF_EARLIER = 5_000;

type Planned = {
  /** `fresh` and `copy` are events. The others must not reach the bus. */
  readonly kind: 'fresh' | 'copy' | 'unknown' | 'tampered';
  /** The notification's, counted for each kind. */
  readonly number: number;
};

export function plannedAt(place: number): Planned {
  const [round, at] = [Math.floor(place / ROUND), place % ROUND];
  if (at === TAMPERED_AT) return { kind: 'tampered', number: round };
  if (at === UNKNOWN_AT) return { kind: 'unknown', number: round };
  const number = round * FRESH_IN_ROUND + freshBefore(at);
  if (at % COPY_EVERY !== COPY_AT) return { kind: 'fresh', number };
  return { kind: 'copy', number: Math.max(0, number - COPY_OF_EARLIER) };
}

/** How many places before this one in its round are fresh. */
function freshBefore(at: number): number {
  const copies = Math.floor((at + COPY_EVERY - COPY_AT - 1) / COPY_EVERY);
  return at - copies - (at > TAMPERED_AT ? 1 : 0);
}

/** The most fresh notifications that so many places can have: the size of a set of them. */
export function freshAtMost(places: number): number {
  return Math.ceil(places / ROUND) * FRESH_IN_ROUND;
}
