// Finds ffmpeg for the sandbox's conversions, or installs it if it can.

import { explain } from '../output.ts';
import { installPackages, isOnPath, mayInstall } from './debian.ts';
import type { Guard } from './guard.ts';

export type SandboxEngine = 'ffmpeg' | 'simulated';

/** Installs Debian's ffmpeg if it is missing and we have the rights. Without it conversions are simulated, which is logged. */
export async function chooseEngine(options: {
  guard: Guard;
  logFile: string;
  log: (line: string) => void;
}): Promise<SandboxEngine> {
  if (isInstalled()) return 'ffmpeg';
  if (mayInstall()) {
    options.log('ffmpeg is missing: installing Debian’s package with apt-get (once; a minute or so)');
    try {
      await installPackages(['ffmpeg'], options);
    } catch (error) {
      options.log(explain(error));
    }
  }
  if (isInstalled()) return 'ffmpeg';
  options.log('ffmpeg is missing, and it cannot be installed from here: conversions are only simulated');
  return 'simulated';
}

const isInstalled = () => isOnPath('ffmpeg') && isOnPath('ffprobe');
