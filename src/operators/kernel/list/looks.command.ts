// How a list's columns look in a terminal, and the colour of each word that has one.

import type { Format } from '../../../terminal/io.ts';
import { ago, briefTime, bytes, count, duration, time } from '../../../terminal/readable.ts';
import type { Column } from '../../../terminal/table.ts';
import { drawnBy, type ListColumn, type Look } from '../../client/index.ts';

const COLOURS: Readonly<Record<string, Format>> = {
  accepted: 'green',
  completed: 'green',
  confirmed: 'green',
  finished: 'green',
  done: 'green',
  processing: 'cyan',
  progress: 'cyan',
  pending: 'cyan',
  running: 'cyan',
  conflict: 'yellow',
  quarantined: 'yellow',
  still_quarantined: 'yellow',
  returned: 'yellow',
  paused: 'yellow',
  late: 'yellow',
  failed: 'red',
  nacked: 'red',
  malformed: 'red',
  unauthorized: 'red',
  refused: 'red',
  parked: 'red',
  open: 'red',
  critical: 'red',
  warning: 'yellow',
  ended: 'dim',
  duplicate: 'dim',
  cancelled: 'dim',
  discarded: 'dim',
};

export const colourOf = (word: string): Format | undefined => COLOURS[word];

type Form = Omit<Column<unknown>, 'head' | 'text' | 'brief' | 'colour'>;

type Drawing = Form & {
  readonly text: (value: string) => string;
  readonly brief?: (value: string) => string;
  readonly colour?: (value: string) => Format | undefined;
};

const asIs = (value: string) => value;

const LOOKS: { readonly [L in Look]: Drawing } = {
  // Shortened where nothing else gives.
  name: { text: asIs, shorten: 'last' },
  id: { text: asIs, shorten: 'first', colour: () => 'dim' },
  // It counts: it is never shortened.
  word: { text: asIs, colour: colourOf },
  time: { text: time, brief: briefTime },
  age: { text: (value) => ago(value), right: true },
  count: { text: (value) => count(Number(value)), right: true },
  percent: { text: (value) => `${value} %`, right: true },
  duration: { text: (value) => duration(Number(value)), right: true },
  size: { text: (value) => bytes(Number(value)), right: true },
  text: { text: asIs, wrapTo: 24, below: 'first' },
};

/** `own`: what is special to a column. */
export function terminalColumn<T>(
  { head, look, of, isMinor }: Omit<ListColumn<T>, 'only'>,
  own: Partial<Column<T>> = {},
): Column<T> {
  const { text, brief, colour, ...form } = LOOKS[look];
  const drawn = (draw: (value: string) => string) => drawnBy(of, (value) => draw(String(value)));
  return {
    head,
    text: drawn(text),
    ...(brief && { brief: drawn(brief) }),
    ...(colour && { colour: (item) => colour(String(of(item))) }),
    ...form,
    // What has room below its row need not be left out.
    ...(isMinor && form.below === undefined && { drop: true }),
    ...own,
  };
}

type Of<T> = ListColumn<T>['of'];

/** Of a time, in UTC. */
export const timeColumn = <T>(head: string, of: Of<T>): Column<T> =>
  terminalColumn({ head, look: 'time', of });
export const nameColumn = <T>(head: string, of: Of<T>): Column<T> =>
  terminalColumn({ head, look: 'name', of });
export const idColumn = <T>(head: string, of: Of<T>): Column<T> => terminalColumn({ head, look: 'id', of });
export const textColumn = <T>(head: string, of: Of<T>): Column<T> =>
  terminalColumn({ head, look: 'text', of });
/** Of what is written as a number already. */
export const numberColumn = <T>(head: string, of: (item: T) => string): Column<T> => ({
  head,
  text: of,
  right: true,
});
