/** Entry of the single executable (docs/install.md), in place of `cli.ts` and `main.ts`: Node is in it, and fits. */
import { findHelper, readPart } from '../core/bundle.ts'
import { runThisProcess } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'

const [, , word] = process.argv
const helper = findHelper(word)
if (word === '__licenses') {
  // The reader may close the pipe early.
  process.stdout.once('error', () => process.exit(exitCodes.outputClosed))
  void readPart(new URL('sea:/THIRD-PARTY-LICENSES.txt')).then((texts) => process.stdout.write(texts))
} else if (helper === undefined) void runThisProcess()
else {
  // Unless somebody listens, the signal opens a debugger, through which passwords could be read.
  process.on('SIGUSR1', () => undefined)
  process.getBuiltinModule('node:inspector').close()
  // A helper finds its arguments where it would find them as a program of its own.
  process.argv.splice(2, 1)
  const { compileFunction } = process.getBuiltinModule('node:vm')
  // It is a bundle in which nothing but built-in modules is left to be required.
  compileFunction(helper, ['require', 'module'])((name: string) => process.getBuiltinModule(name), { exports: {} })
}
