// Finds a program that tests need, or installs Debian's if it can.

import { join } from 'node:path';
import { explain } from '../output.ts';
import { installPackages, isOnPath, mayInstall, unpackPackages } from './debian.ts';
import type { Guard } from './guard.ts';

export type Search = {
  /** The variable of the environment that names the program. Then no other one is looked for. */
  readonly variable: string;
  /** Whether it can do here what the tests need. */
  readonly works: (program: string) => boolean;
  /** Paths, in order. Asked again after the installation. */
  readonly candidates: () => readonly string[];
  /** Of Debian; none for what is not installed. */
  readonly packages: readonly string[];
  /** A folder that they are unpacked into instead, which needs no rights. */
  readonly unpackInto?: string | undefined;
  /** Said before these are installed. */
  readonly news: string;
};

/** Of all searches: the tests are busy for long, so a trial may take long, too. */
export const TRIAL_TIMEOUT_MS = 20_000;

/** The path of a program that works; undefined without one. Never rejects: why an installation failed is in the log. */
export async function findProgram(
  { variable, works, candidates, packages, unpackInto, news }: Search,
  options: { guard: Guard; logFile: string; log: (line: string) => void },
): Promise<string | undefined> {
  const named = process.env[variable];
  if (named) return works(named) ? named : undefined;
  const found = candidates().find(works);
  const canGet = () => (unpackInto === undefined ? mayInstall() : isOnPath('apt-get'));
  if (found !== undefined || packages.length === 0 || !canGet()) return found;
  options.log(news);
  try {
    if (unpackInto === undefined) await installPackages(packages, options);
    else await unpackPackages(packages, unpackInto, options);
  } catch (error) {
    options.log(explain(error));
  }
  return candidates().find(works);
}

/** A program, by the variable that names it. */
export type NamedProgram = {
  readonly name: string;
  readonly variable: string;
  /** What is said where it is missing. */
  readonly without: string;
  readonly find: (options: Parameters<typeof findProgram>[1]) => Promise<string | undefined>;
};

/** The variables that name what was found: empty where nothing was. */
export async function findPrograms(
  programs: readonly NamedProgram[],
  { guard, folder, log }: { guard: Guard; folder: string; log: (line: string) => void },
): Promise<Record<string, string>> {
  const found = await Promise.all(
    programs.map(async ({ name, variable, find }) => {
      const path = await find({ guard, logFile: join(folder, `install-${name}.log`), log });
      return [variable, path ?? ''] as const;
    }),
  );
  return Object.fromEntries(found);
}
