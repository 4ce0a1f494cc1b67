// Sees to it that ffmpeg is there for the sandbox's conversions, if it may.

import { explain } from '../output.ts';
import { installPackage, isOnPath, mayInstall } from './debian.ts';
import type { Guard } from './guard.ts';

export type SandboxEngine = 'ffmpeg' | 'simulated';

/** Debian's ffmpeg, installed if it is missing and may be; without it, conversions are simulated, and that is said. */
export async function chooseEngine(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<SandboxEngine> {
  if (isInstalled()) return 'ffmpeg';
  if (mayInstall()) {
    options.log('ffmpeg is missing: installing Debian’s package with apt-get (once; a minute or so)');
    try {
      await installPackage('ffmpeg', options);
    } catch (error) {
      options.log(explain(error));
    }
  }
  if (isInstalled()) return 'ffmpeg';
  options.log('ffmpeg is missing, and it cannot be installed from here: conversions are only simulated');
  return 'simulated';
}

const isInstalled = () => isOnPath('ffmpeg') && isOnPath('ffprobe');
