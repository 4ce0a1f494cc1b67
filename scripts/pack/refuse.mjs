// npm's `prepack` in the repository: refuses `npm pack` and `npm publish` there. They would pack TypeScript, which Node runs in no
// `node_modules`. The package of `npm run pack` is `private`, which refuses only the second. npm runs this before `npm run pack`, too.
// Plain JavaScript for any Node from 16.

if (['pack', 'publish'].includes(process.env.npm_command)) {
  process.stderr.write(
    'This folder is no package: Node strips no types in node_modules. Use: npm run pack\n',
  );
  process.exitCode = 1;
}
