// The two ports of a local run: those that the caller gives, or the usual ones, or others where these are in use.

import { given, type LocalEnv } from './local-env.ts';
import { paint } from './output.ts';
import { findFreePort, isFree } from './services/ports.ts';

export type Ports = Pick<LocalEnv, 'PORT' | 'OPERATOR_PORT'>;

const USUAL_PORTS = { PORT: 8080, OPERATOR_PORT: 8081 } as const;
const ATTEMPTS_MAX = 5;

/** `before`: the ports of an earlier run, taken where a usual one is in use. @throws Error if a given port is in use */
export async function choosePorts(before: Partial<Ports>, note: (line: string) => void): Promise<Ports> {
  const chosen = { PORT: '', OPERATOR_PORT: '' };
  for (const name of ['PORT', 'OPERATOR_PORT'] as const) {
    const fromOutside = given(name);
    if (fromOutside !== undefined) {
      if (!(await isFree(Number(fromOutside)))) throw new Error(`${name} ${fromOutside} is in use`);
      chosen[name] = fromOutside;
      continue;
    }
    const usual = USUAL_PORTS[name];
    const isUsual = String(usual) !== chosen.PORT && (await isFree(usual));
    chosen[name] = String(isUsual ? usual : await findFreePort(Number(before[name]) || undefined));
    if (!isUsual) note(paint('yellow', `  port ${usual} is in use: ${name} is ${chosen[name]} this time`));
  }
  return chosen;
}

/** Another program can take a port between our choice and its use: then ports are chosen again, a few times. */
export async function startOnFreePorts<T>(
  choose: () => Promise<Ports>,
  start: (ports: Ports) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const ports = await choose();
    try {
      return await start(ports);
    } catch (error) {
      const wasTaken = error instanceof Error && error.message.includes('EADDRINUSE');
      if (!wasTaken || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
