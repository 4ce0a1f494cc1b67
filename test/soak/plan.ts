// What a soak sends, by its place in the plan: which notification, and whether it is a fresh one. Pure: nothing is
// kept for each delivery, so an hour of them costs no memory. Each is told by its number, and so is what comes of it
// on the bus.

/** Of so many in a row, one is wrongly signed, one of a status that nobody knows, and each fiftieth is a copy. */
const ROUND = 1_000;
const TAMPERED_AT = 499;
const UNKNOWN_AT = 999;
const COPY_EVERY = 50;
const COPY_AT = 20;
const FRESH_IN_ROUND = ROUND - 2 - ROUND / COPY_EVERY;

/** Long enough ago that its first was answered, where nothing is broken. */
const COPY_OF_EARLIER = 5_000;

type Planned = {
  /** `fresh` and `copy` are events; of the others nothing may reach the bus. */
  readonly kind: 'fresh' | 'copy' | 'unknown' | 'tampered';
  /** Of the notification; of its own kind. */
  readonly number: number;
};

export function plannedAt(place: number): Planned {
  const [round, at] = [Math.floor(place / ROUND), place % ROUND];
  if (at === TAMPERED_AT) return { kind: 'tampered', number: round };
  if (at === UNKNOWN_AT) return { kind: 'unknown', number: round };
  const number = round * FRESH_IN_ROUND + freshBefore(at);
  const isCopy = at % COPY_EVERY === COPY_AT && number >= COPY_OF_EARLIER;
  if (at % COPY_EVERY !== COPY_AT) return { kind: 'fresh', number };
  return isCopy ? { kind: 'copy', number: number - COPY_OF_EARLIER } : { kind: 'copy', number: 0 };
}

/** Places before this one in its round that are fresh. */
function freshBefore(at: number): number {
  const copies = Math.floor((at + COPY_EVERY - COPY_AT - 1) / COPY_EVERY);
  return at - copies - (at > TAMPERED_AT ? 1 : 0);
}

/** Fresh notifications in the first so many places, at most: for the size of a set of them. */
export function freshAtMost(places: number): number {
  return Math.ceil(places / ROUND) * FRESH_IN_ROUND;
}
