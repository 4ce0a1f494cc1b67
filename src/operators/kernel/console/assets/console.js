// What the console's pages gain with a script. Every page but the live one works without it.

import { offerCopies } from './copy.js';
import { guardForms } from './forms.js';
import { watchKeys } from './keyboard.js';
import { refreshItself } from './refresh.js';
import { offerAll } from './ticks.js';
import { tellTimes } from './times.js';

/** Of the page before it: so the row looks like one that scrolls. */
const SHOWN_BEFORE_PX = 48;

document.documentElement.dataset.script = 'on';
watchKeys();
offerCopies();
guardForms();
offerAll();
tellTimes();
refreshItself();
showPresentPage();
const live = document.getElementById('live');
if (live) void import('./live.js').then(({ showLive }) => showLive(live));

/** On a narrow screen the list of pages is one row, and the present one may be off to the right. */
function showPresentPage() {
  const pages = document.querySelector('.page > nav');
  const present = pages?.querySelector('[aria-current]');
  if (present) pages.scrollLeft = present.offsetLeft - pages.offsetLeft - SHOWN_BEFORE_PX;
}
