// `npm run manifests`: makes the files in deploy/kubernetes again, after a change of scripts/manifests. Nothing is written if one of
// them is not valid.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeManifests, MANIFESTS } from './manifests/files.ts';
import { complain, complainOfUsage, explain, say } from './output.ts';

function main(args: string[]): number {
  try {
    parseArgs({ args });
  } catch (error) {
    complainOfUsage('npm run manifests', error);
    return 2;
  }
  try {
    for (const { path, text } of makeManifests()) {
      writeFileSync(join(MANIFESTS, path), text);
      say(`deploy/kubernetes/${path}`);
    }
    return 0;
  } catch (error) {
    complain(explain(error));
    return 1;
  }
}

process.exit(main(process.argv.slice(2)));
