// Every version of the TypeScript declarations that was released with a form, in contracts/types/released: a subscriber who
// compiled against one of them still gets the events of today.

import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const PLACE = 'types/released';

/** The names of the kept files. @param folder that is contracts/ */
export function keptTypes(folder: string): readonly string[] {
  const place = join(folder, PLACE);
  if (!existsSync(place)) return [];
  return readdirSync(place).filter((name) => /^events\.\d+\.ts$/.test(name));
}

/** Keeps a copy of the present ones under the next number. */
export function keepTypes(folder: string): void {
  mkdirSync(join(folder, PLACE), { recursive: true });
  const next = keptTypes(folder).length + 1;
  copyFileSync(join(folder, 'types/events.ts'), join(folder, PLACE, `events.${next}.ts`));
}
