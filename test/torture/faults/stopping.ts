// A replica that is asked to stop while clients open a new connection for each request. Whoever has a connection gets an answer; only
// connections that are refused are none.

import { send } from '../request.ts';
import { pause } from '../../support/until.ts';
import { candidates, type Fault } from './types.ts';

/** A hundred new connections a second, one after the other. */
const EVERY_MS = 10;
/** Before the stop. */
const LEAD_MS = 300;

const REFUSED = 'ECONNREFUSED';

export const stoppingFault: Fault = {
  name: 'replica-stop-under-connections',
  subject: 'replicas',
  what: 'SIGTERM to one replica while a hundred new connections a second come, each with one request; started again',
  strike: async ({ world }, how) => {
    const replica = how.random.pick(candidates(world, how));
    const calling = callUntil(
      `${replica.direct}/livez`,
      pause(LEAD_MS).then(() => replica.stop()),
    );
    return { replicas: [replica.index], cutOff: await calling, heal: () => replica.start() };
  },
};

/** @returns how many requests were neither answered nor refused */
async function callUntil(url: string, end: Promise<void>): Promise<number> {
  const calls: Promise<boolean>[] = [];
  const state = { isOver: false };
  const over = end.finally(() => (state.isOver = true));
  while (!state.isOver) {
    calls.push(isCutOff(url));
    await pause(EVERY_MS);
  }
  await over;
  return (await Promise.all(calls)).filter(Boolean).length;
}

async function isCutOff(url: string): Promise<boolean> {
  const options = { url, method: 'GET', headers: {}, body: '', agent: false, onLate: () => {} } as const;
  const { status, error } = await send(options);
  return status === undefined && error !== REFUSED;
}
