// Tells whoever listens, which is the profile, that a test starts something dear. Processes tell it by themselves: Node has a channel
// for them.

import { channel } from 'node:diagnostics_channel';

export const STARTS = { service: 'tallyhook-test:service', database: 'tallyhook-test:database' } as const;

export function tellStart(of: keyof typeof STARTS): void {
  channel(STARTS[of]).publish({});
}
