// How V8 collects garbage while the service runs (docs/decisions/2026-11-23-short-lives.md). To be set before the first delivery.

import { setFlagsFromString } from 'node:v8';

/**
 * V8 notes which objects live long, and puts new ones of their kind among the old ones at once. Here it takes what a delivery
 * needs for such a kind, since hundreds are in flight when the load is high, and keeps all that they refer to until it collects
 * old objects: pauses are three times as long then. Nearly all that this process makes goes with its delivery.
 */
const ALL_IS_SHORT_LIVED = '--no-allocation-site-pretenuring';

/**
 * V8 looks at all objects each time when 64 MiB of buffers were allocated, however few are alive: with bodies of 64 KiB twice a
 * second. With this it looks when as much is alive as its limit for all memory says. V8 14.8 does so by itself, without a flag.
 */
const COUNTS_LIVE_BUFFERS = '--external-memory-accounted-in-global-limit';

/** Of this version of V8 (`13.6.233`, as in `process.versions`). V8 complains of a flag that it does not know. */
export function collectorFlags(v8Version: string = process.versions.v8): string[] {
  const [major = 0, minor = 0] = v8Version.split('.').map(Number);
  const isKnown = (major === 13 && minor >= 6) || (major === 14 && minor < 8);
  return isKnown ? [ALL_IS_SHORT_LIVED, COUNTS_LIVE_BUFFERS] : [ALL_IS_SHORT_LIVED];
}

export function setCollectorFlags(): void {
  for (const flag of collectorFlags()) setFlagsFromString(flag);
}
