// Takes pictures of the console's pages with Chromium.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';
import type { Picture } from './pages.ts';
import type { Stage } from './stage.ts';

export type Looks = { readonly width: number; readonly isDark: boolean };

const HEIGHT = 800;
/** Small files in which text is crisp. A picture of many letters and few colours is smaller without a loss. */
const QUALITY = 45;
const LOSSLESS = 100;
const LAUNCH_MS = 45_000;
const WAIT_MS = 15_000;

/** @param options.home Chromium writes what it keeps there */
export async function launchBrowser(options: { program: string; home: string }): Promise<Browser> {
  return chromium.launch({
    executablePath: options.program,
    // Chromium's sandbox refuses to work for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: ['--disable-gpu', '--no-proxy-server', '--hide-scrollbars'],
    env: { ...process.env, HOME: options.home, TMPDIR: options.home },
    timeout: LAUNCH_MS,
  });
}

/** Signed in with the stage's token. */
export async function openConsole(
  browser: Browser,
  { operators, token }: Stage,
  looks: Looks,
): Promise<Page> {
  const context = await browser.newContext({
    baseURL: operators,
    viewport: { width: looks.width, height: HEIGHT },
    colorScheme: looks.isDark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    locale: 'en-GB',
  });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  await page.goto('/console/sign-in');
  await page.locator('input[name=token]').fill(token);
  await page.locator('main form button').first().click();
  await page.waitForURL('**/console');
  return page;
}

/** @returns the size in bytes */
export async function takePicture(
  page: Page,
  { name, path, height = HEIGHT, prepare }: Picture,
  { stage, folder }: { stage: Stage; folder: string },
): Promise<number> {
  await page.setViewportSize({ width: page.viewportSize()?.width ?? 0, height });
  const answer = await page.goto(`/console${path}`);
  if (!answer?.ok()) throw new Error(`${path}: ${answer?.status()}`);
  await prepare?.(page, stage);
  await page.evaluate('scrollTo(0, 0)');
  // Nothing is marked by the pointer or the keyboard.
  await page.mouse.move(0, 0);
  const session = await page.context().newCDPSession(page);
  const [crisp, lossless] = await Promise.all([capture(session, QUALITY), capture(session, LOSSLESS)]);
  await session.detach();
  const picture = crisp.length < lossless.length ? crisp : lossless;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.webp`), picture);
  return picture.length;
}

async function capture(session: CDPSession, quality: number): Promise<Buffer> {
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
  return Buffer.from(data, 'base64');
}
