// `tallyhook healthcheck`: whether the service in the same container, or on the same machine, is alive. It runs every few seconds
// beside the service, so it loads no package: reading the whole configuration would take most of its time.

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { ConfigError, describeError } from '../base/errors.ts';
import { hostInUrl } from '../base/net/host-in-url.ts';
import { parse } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { withLocalRun } from '../terminal/environment.ts';

const help = `Says whether the service beside it, at OPERATOR_HOST and OPERATOR_PORT, is alive: for the health check of a container.

  healthcheck

Exit code 0 if it is, 1 if not, 78 if OPERATOR_PORT is no port. Alive is not ready: /readyz says whether it takes deliveries.`;

/** With the start of Node on a busy machine less than the 10 s that the Dockerfile gives, so that a service that hangs is named. */
const ANSWER_TIMEOUT_MS = 3_000;

const PORT_MAX = 65_535;

export const healthcheck: Command = {
  help,
  run: async (args, env, io) => {
    parse(args, {});
    // The defaults of config.ts.
    const { OPERATOR_HOST, OPERATOR_PORT } = withLocalRun(env);
    const url = `http://${hostInUrl(OPERATOR_HOST || '127.0.0.1')}:${portOf(OPERATOR_PORT)}/livez`;
    try {
      const status = await statusOf(url);
      const isAlive = status === 200;
      (isAlive ? io.say : io.complain)(`${url} answers with ${status}`);
      return isAlive ? 0 : 1;
    } catch (error) {
      const late = (error as Error).name === 'AbortError' && `nothing within ${ANSWER_TIMEOUT_MS} ms`;
      io.complain(`${url} does not answer: ${late || describeError(error).message}`);
      return 1;
    }
  },
};

/** As config.ts takes it. @throws ConfigError */
function portOf(text = ''): string {
  const port = text || '8081';
  if (!/^\d{1,15}$/.test(port)) throw new ConfigError(['OPERATOR_PORT must be a whole number']);
  if (Number(port) > PORT_MAX) throw new ConfigError([`OPERATOR_PORT must be at most ${PORT_MAX}`]);
  return port;
}

async function statusOf(url: string): Promise<number | undefined> {
  const request = get(url, { agent: false, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}
