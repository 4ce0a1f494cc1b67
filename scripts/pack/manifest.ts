// The package.json of the package, made from the repository's: what is true of both stands there alone. And its lock file, with
// what the package needs to run, from which its bill of materials is made.

export type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
};

/** What the package states, without what is of use in the repository alone. */
export type Packaged = { readonly name: string; readonly [field: string]: unknown };

export type Lock = { readonly packages: Readonly<Record<string, { readonly dev?: boolean }>> };

/** Of no use without the repository. */
const LEFT_OUT = ['scripts', 'devDependencies', 'allowScripts'];

/** `private`: `npm publish` refuses it. In npm's registry the name is nobody's, and nobody should take it by accident. */
export function packageManifest(own: Manifest): Packaged {
  const kept = Object.entries(own).filter(([name]) => !LEFT_OUT.includes(name));
  const doors = Object.entries(own.exports).map(([name, path]) => [name, packagedDoor(path)]);
  return {
    name: own.name,
    private: true,
    ...Object.fromEntries(kept),
    exports: Object.fromEntries(doors) as unknown,
  };
}

/** The modules of `exports`, as paths in the repository. */
export const doorsOf = ({ exports }: Manifest): string[] =>
  Object.values(exports).filter((path) => path.endsWith('.ts'));

/** Without a condition for `require`: Node gives an ES module to both. */
function packagedDoor(path: string): string | { readonly types: string; readonly default: string } {
  if (!path.endsWith('.ts')) return path;
  const stem = path.slice(0, -'.ts'.length);
  return { types: `${stem}.d.ts`, default: `${stem}.js` };
}

export function packageLock(own: Lock, manifest: Packaged): Record<string, unknown> {
  const needed = neededBy(own).map((path) => [path, own.packages[path]] as const);
  return { ...own, packages: { '': manifest, ...Object.fromEntries(needed) } };
}

/** The folders of the packages that the program needs to run. */
export const neededBy = ({ packages }: Lock): string[] =>
  Object.keys(packages).filter((path) => path !== '' && packages[path]?.dev !== true);
