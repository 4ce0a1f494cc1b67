// Finds RabbitMQ's own scripts on this machine. If they are missing, installs Debian's package if we have the rights, or else
// says what to do.

import { join } from 'node:path';
import { explain } from '../output.ts';
import { installPackages, isProgram, mayInstall, pathFolders } from './debian.ts';
import type { Guard } from './guard.ts';

// The folder of Debian's and Fedora's packages comes first: the programs that they put on the PATH run under their own account
// only. Homebrew's folder is often not on the PATH.
const FOLDERS = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/sbin', '/usr/local/sbin'];

const WHAT_TO_DO = `RabbitMQ is missing, and it cannot be installed from here. Any one of these will do:
  Debian, Ubuntu   sudo apt-get install --no-install-recommends rabbitmq-server
  macOS            brew install rabbitmq
  Docker           docker run --rm -p 127.0.0.1:5672:5672 rabbitmq:4
                   and then, in another terminal, AMQP_URL=amqp://guest:guest@127.0.0.1:5672 npm start`;

/** The folder of rabbitmq-server and rabbitmqctl. The installation's output goes to `logFile`. */
export async function findRabbitmq(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<string> {
  const found = installedFolder();
  if (found !== undefined) return found;
  if (!mayInstall()) throw new Error(WHAT_TO_DO);
  options.log('RabbitMQ is missing: installing Debian’s rabbitmq-server with apt-get (once; a minute or so)');
  try {
    await installPackages(['rabbitmq-server'], options);
  } catch (error) {
    throw new Error(`${explain(error)}\n\n${WHAT_TO_DO}`, { cause: error });
  }
  const installed = installedFolder();
  if (installed === undefined) throw new Error(WHAT_TO_DO);
  return installed;
}

function installedFolder(): string | undefined {
  return [...FOLDERS, ...pathFolders()].find(
    (folder) => isProgram(join(folder, 'rabbitmq-server')) && isProgram(join(folder, 'rabbitmqctl')),
  );
}
