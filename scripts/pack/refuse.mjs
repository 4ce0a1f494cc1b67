// npm's `prepack` in the repository: refuses `npm pack` and `npm publish` there. They would pack TypeScript, which Node runs in no
// `node_modules`. In place of `private`, which refuses only the second, and which the package that `npm run pack` makes must not
// have. npm runs this before `npm run pack`, too. Plain JavaScript for any Node from 16.

if (['pack', 'publish'].includes(process.env.npm_command)) {
  process.stderr.write(
    'This folder is no package: Node strips no types in node_modules. Use: npm run pack\n',
  );
  process.exitCode = 1;
}
