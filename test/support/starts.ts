// Tells whoever listens what a test starts: the profile, that it is something dear, and `failures.ts`, where its log is. Processes
// tell it by themselves: Node has a channel for them.

import { channel } from 'node:diagnostics_channel';

export const STARTS = { service: 'tallyhook-test:service', database: 'tallyhook-test:database' } as const;

export function tellStart(of: keyof typeof STARTS): void {
  channel(STARTS[of]).publish({});
}

export const LOGS = 'tallyhook-test:log';

/** Everything logged so far, parsed. It grows. */
export type LogLines = readonly Readonly<Record<string, unknown>>[];

export function tellLog(lines: LogLines): void {
  channel(LOGS).publish(lines);
}
