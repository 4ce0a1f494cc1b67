// `npm run pictures`: makes the pictures of the console's pages in docs/console again, of a private relay with a small history.
// Its options are in usage/pictures.txt.

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runGuarded } from './guarded.ts';
import { createProgress, say } from './output.ts';
import { launchBrowser, type Looks, openConsole, takePicture } from './pictures/camera.ts';
import { makeHistory } from './pictures/history.ts';
import { PICTURES, type Picture } from './pictures/pages.ts';
import { setStage } from './pictures/stage.ts';
import { ROOT } from './relay.ts';
import { findChromium } from './services/find-chromium.ts';
import { makeThrowAwayFolder } from './services/folders.ts';
import type { Guard } from './services/guard.ts';

type Options = { readonly folder: string; readonly looks: Looks; readonly pictures: readonly Picture[] };

const FOLDER = join(ROOT, 'docs/console');
const WIDTH = 1_280;

/** @throws Error with what is wrong with them */
function readOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: {
      to: { type: 'string' },
      width: { type: 'string', default: String(WIDTH) },
      dark: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  });
  if (!/^[1-9]\d{2,3}$/.test(values.width)) throw new Error('--width takes a number from 100 to 9999');
  const wanted = values.only?.split(',');
  const unknown = wanted?.filter((name) => !PICTURES.some((picture) => picture.name === name)) ?? [];
  if (unknown.length > 0) {
    throw new Error(
      `there is no page ${unknown.join(', ')}. There are: ${PICTURES.map(({ name }) => name).join(', ')}`,
    );
  }
  return {
    folder: values.to === undefined ? FOLDER : resolve(values.to),
    looks: { width: Number(values.width), isDark: values.dark },
    pictures: PICTURES.filter(({ name }) => wanted?.includes(name) ?? true),
  };
}

async function run(guard: Guard, { folder, looks, pictures }: Options): Promise<number> {
  const progress = createProgress();
  const place = makeThrowAwayFolder(guard);
  const program = await findChromium({ guard, logFile: join(place, 'install.log'), log: progress.note });
  if (program === undefined)
    throw new Error('There is no Chromium that works here: install it, or name one by TEST_CHROMIUM.');
  const stage = await setStage(guard, place, progress);
  await progress.during('history', () => makeHistory(stage));
  const home = join(place, 'home');
  mkdirSync(home);
  const browser = await launchBrowser({ program, home });
  try {
    const page = await openConsole(browser, stage, looks);
    for (const picture of pictures) {
      const bytes = await takePicture(page, picture, { stage, folder });
      say(`${picture.name}.webp: ${(bytes / 1_000).toFixed(0)} kB`);
    }
    return 0;
  } finally {
    await browser.close();
  }
}

process.exit(await runGuarded('npm run pictures', () => readOptions(process.argv.slice(2)), run));
