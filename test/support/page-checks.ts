// What is asked of every page of ours: it is accessible, nothing of it is wider than the window, what can be pressed is in reach, and
// what is written can be read.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { type Look, show } from './browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Without `preload`, which loads style sheets once more for rules that are off, and warns where it cannot. */
const OPTIONS = { resultTypes: ['violations'], preload: false };

/** axe waits by timers, which do not run in a page whose JavaScript is off; promises do. */
const TIMERS_THAT_RUN = `if (matchMedia('(scripting: none)').matches)
  window.setTimeout = (run) => { Promise.resolve().then(run); return 0; }`;

/**
 * Nothing if the page is accessible, fits, has what can be pressed in reach and can be read in each of the looks; else one line for
 * each fault. Ends with the last look.
 */
export async function faultsIn(page: Page, looks: readonly Look[]): Promise<string[]> {
  const faults: string[] = [];
  for (const look of looks) {
    await show(page, look);
    const found = [
      ...(await axeViolations(page)),
      ...(await overflow(page)),
      ...(await outOfReach(page)),
      ...(await unreadable(page)),
    ];
    faults.push(...found.map((fault) => `${look.width} pixels, ${look.colorScheme}: ${fault}`));
  }
  return faults;
}

/** All rules of axe-core that the page breaks, each with its impact and the elements: one line a rule. */
export async function axeViolations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>(`'axe' in window`))) {
    await page.evaluate(TIMERS_THAT_RUN);
    await page.evaluate(AXE);
  }
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(OPTIONS)})`);
  return violations.map(({ id, impact, help, nodes }) => {
    const elements = nodes.map(({ target }) => target.join(' '));
    return `${id} (${impact}): ${help}: ${elements.join(', ')}`;
  });
}

/** Nothing if the whole page fits the window's width; else the widths, and elements that reach beyond it. */
export function overflow(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const beyond = [...document.body.querySelectorAll('*')].filter(
      (each) => each.getBoundingClientRect().right > clientWidth,
    );
    const names = beyond.map((each) => each.tagName.toLowerCase() + (each.id && '#' + each.id));
    return [scrollWidth + ' > ' + clientWidth + ' pixels', ...names.slice(0, 5)];
  })()`);
}

/**
 * What can be pressed and is beyond the window's side: buttons where nothing can be scrolled to show them, and the actions of a row
 * even then.
 */
function outOfReach(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const width = document.documentElement.clientWidth;
    const isSeen = (each) => each.checkVisibility({ contentVisibilityAuto: true }) && !each.closest('.unseen, .skip');
    const isBeyond = (each) => {
      const { left, right } = each.getBoundingClientRect();
      return right > width + 1 || left < -1;
    };
    const scrolls = (each) => each !== null && (
      ['auto', 'scroll'].includes(getComputedStyle(each).overflowX) || scrolls(each.parentElement));
    const buttons = [...document.querySelectorAll('button, .button, summary')].filter((each) => !scrolls(each));
    return [...buttons, ...document.querySelectorAll('td.act a')]
      .filter((each) => isSeen(each) && isBeyond(each))
      .map((each) => 'out of reach: ' + each.textContent.trim());
  })()`);
}

/**
 * Cells of lists that are cut, lie below the actions that stay in sight or, where the rows are blocks, beyond their side; and texts that
 * are written over each other or over the border of their box. A list with all its columns may be wider than 1280 pixels have room for.
 */
function unreadable(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const isSeen = (each) => each.checkVisibility({ contentVisibilityAuto: true }) && !each.closest('.unseen');
    const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter(isSeen);
    const meet = (one, other) => one.right > other.left + 1 && other.right > one.left + 1
      && one.bottom > other.top + 1 && other.bottom > one.top + 1;
    const linesOf = (each) => {
      const texts = document.createTreeWalker(each, NodeFilter.SHOW_TEXT);
      const lines = [];
      while (texts.nextNode()) {
        if (texts.currentNode.parentElement.closest('.unseen') !== null) continue;
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        lines.push(...range.getClientRects());
      }
      return lines.filter(({ width }) => width > 0);
    };
    const isCut = (each) => getComputedStyle(each).overflowX !== 'visible'
      && (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1);
    const isNarrow = innerWidth <= 900;
    const faults = [];
    const tell = (what, each) => faults.push(what + ': ' + (each.dataset.head ?? '') + ' ' + each.textContent.trim().slice(0, 60));

    for (const cell of all('.list td')) {
      const lines = linesOf(cell);
      const { left, right } = (cell.closest('.scroll') ?? document.body).getBoundingClientRect();
      const act = cell.parentElement.querySelector('.act');
      if ([cell, ...cell.querySelectorAll('*')].some((each) => !each.matches('.unseen, .unseen *, input, select') && isCut(each))) tell('cut', cell);
      if (isNarrow && lines.some((line) => line.right > right + 1 || line.left < left - 1)) tell('beyond the side of its list', cell);
      if (act !== null && act !== cell && lines.some((line) => meet(line, act.getBoundingClientRect()))) tell('below the actions', cell);
    }
    for (const plot of all('svg.plot')) {
      const texts = all('text', plot);
      for (const [index, text] of texts.entries()) {
        const others = texts.slice(index + 1);
        if (others.some((other) => meet(text.getBoundingClientRect(), other.getBoundingClientRect()))) tell('written over', text);
      }
    }
    for (const figure of all('.figures li')) {
      const { right } = figure.getBoundingClientRect();
      if (linesOf(figure).some((line) => line.right > right)) tell('over its border', figure);
    }
    return faults;
  })()`);
}
