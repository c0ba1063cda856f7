/** Entry of the single executable (docs/install.md), in place of `cli.ts` and `main.ts`: Node is in it, and fits. */
import { findHelper } from './bundle.ts'
import { runCommandLine } from './cli/command-line.ts'

const helper = findHelper(process.argv[2])
if (helper === undefined) void runCommandLine()
else {
  // A helper finds its arguments where it would find them as a program of its own.
  process.argv.splice(2, 1)
  const { compileFunction } = process.getBuiltinModule('node:vm')
  // It is a bundle in which nothing but built-in modules is left to be required.
  compileFunction(helper, ['require', 'module'])((name: string) => process.getBuiltinModule(name), { exports: {} })
}
