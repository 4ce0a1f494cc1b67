// What the console's pages gain with a script. Every page but the live one works without it.

import { offerCopies } from './copy.js';
import { guardForms } from './forms.js';
import { watchKeys } from './keyboard.js';
import { refreshItself } from './refresh.js';
import { offerAll } from './ticks.js';
import { tellTimes } from './times.js';

document.documentElement.dataset.script = 'on';
watchKeys();
offerCopies();
guardForms();
offerAll();
tellTimes();
refreshItself();
const live = document.getElementById('live');
if (live) void import('./live.js').then(({ showLive }) => showLive(live));
