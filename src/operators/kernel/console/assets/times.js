// Times stand in UTC. Pointing at one, or reaching its row, shows the local time and how long ago it was.

const UNITS = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

export function tellTimes() {
  for (const event of ['pointerover', 'focusin'])
    document.addEventListener(event, ({ target }) => tell(target));
}

function tell(target) {
  const time = target.closest?.('time');
  const times = time ? [time] : (target.closest?.('tr')?.querySelectorAll('time') ?? []);
  for (const each of times)
    each.title = `${each.dateTime}\n${localTime(each.dateTime)}\n${ago(each.dateTime)}`;
}

const localTime = (text) => local.format(new Date(text));

function ago(text) {
  const seconds = Math.round((Date.parse(text) - Date.now()) / 1_000);
  const [size, unit] = UNITS.find(([each]) => Math.abs(seconds) >= each) ?? [1, 'second'];
  return relative.format(Math.trunc(seconds / size), unit);
}
