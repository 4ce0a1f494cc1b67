// Options of commands as tables: what each takes and its help, said once. `parse` reads them, and the help texts are made from
// them.

/** Of an option. */
type Help = {
  /** What it takes: `NAME`. */
  readonly takes?: string;
  /** Further lines stand below the first one. */
  readonly help: string;
};

export const option = (takes: string, help: string) => ({ type: 'string', takes, help }) as const;
export const flag = (help: string) => ({ type: 'boolean', help }) as const;

const WIDTH = 21;

/** Lines for a command's help, in the order of the table. */
export function optionHelp(table: Readonly<Record<string, Help>>, width = WIDTH): string {
  const below = `\n${' '.repeat(width + 5)}`;
  return Object.entries(table)
    .map(([name, { takes, help }]) => {
      const usage = takes === undefined ? `--${name}` : `--${name} ${takes}`;
      return `    ${usage.padEnd(width)} ${help.replaceAll('\n', below)}`;
    })
    .join('\n');
}
