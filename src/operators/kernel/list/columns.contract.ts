// What a list shows of its items, said once for terminals and pages. How each look is drawn stands in
// operators/kernel/list/looks.command.ts and in operators/kernel/list/looks.pages.ts. What only one of the two shows otherwise,
// such as a link, is a cell of its own there, under the column's key.

/**
 * - `name`: of a job, an event, a source, a person
 * - `id`: made by us, which nobody reads first
 * - `word`: one of a few, such as a state, which may have a colour
 * - `time`: RFC 3339; `age`: the same, where how long ago it was counts
 * - `count`, `percent`, `duration` in milliseconds, `size` in bytes
 * - `text`: some words or a sentence
 */
export type Look =
  | 'name'
  | 'id'
  | 'word'
  | 'time'
  | 'age'
  | 'count'
  | 'percent'
  | 'duration'
  | 'size'
  | 'text';

export type Value = string | number | null | undefined;

export type ListColumn<Item> = {
  /** As terminals write it; pages begin it with a capital. */
  readonly head: string;
  readonly look: Look;
  /** Nothing is shown for null. */
  readonly of: (item: Item) => Value;
  /** Where it is shown, if not in both. */
  readonly only?: 'terminals' | 'pages';
  /** Narrow terminals leave it out. */
  readonly isMinor?: true;
  /** Few items have it: pages leave it out where no row has a value, as terminals do with all columns. */
  readonly isRare?: true;
};

/** By their keys, in their order. */
export type ListColumns<Item> = Readonly<Record<string, ListColumn<Item>>>;

type Given<Item, Key> = Omit<ListColumn<Item>, 'of'> &
  (Key extends keyof Item
    ? Item[Key] extends Value
      ? Partial<Pick<ListColumn<Item>, 'of'>>
      : Pick<ListColumn<Item>, 'of'>
    : Pick<ListColumn<Item>, 'of'>);

/** The columns of a list. Without an `of` a column shows the field of its key; a key that is no field must have one. */
export const columnsOf =
  <Item>() =>
  <const Key extends string>(
    given: { readonly [K in Key]: Given<Item, K> },
  ): Readonly<Record<Key, ListColumn<Item>>> => {
    const entries = Object.entries<Omit<ListColumn<Item>, 'of'> & Partial<ListColumn<Item>>>(given);
    const whole = entries.map(
      ([key, { of = (item: Item) => item[key as keyof Item] as Value, ...column }]) => [
        key,
        { ...column, of },
      ],
    );
    return Object.fromEntries(whole) as Record<Key, ListColumn<Item>>;
  };

/** Those that are shown there, with their keys. */
export const columnsFor = <Item>(
  columns: ListColumns<Item>,
  place: 'terminals' | 'pages',
): readonly [key: string, column: ListColumn<Item>][] =>
  Object.entries(columns).filter(([, { only = place }]) => only === place);

/** Draws the value of an item, and nothing where there is none. */
export const drawnBy =
  <Item, Drawn>(
    of: ListColumn<Item>['of'],
    draw: (value: NonNullable<Value>) => Drawn,
  ): ((item: Item) => Drawn | undefined) =>
  (item) => {
    const value = of(item);
    return value === null || value === undefined ? undefined : draw(value);
  };
