/** What root is asked to do with files of another account. */
import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { absolutePath, cliProcess } from '../cli-process.ts'
import type { Account } from '../../lib/process/index.ts'
import { isSingleExecutable } from '../../core/bundle.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'

/**
 * Runs this command line once more, as the account: that may do there what it likes, and nothing elsewhere.
 *
 * @param files of the configuration that was found, which the account might not find from here
 * @returns its exit code @throws CliFailure when it cannot be run
 */
export function runAgainAs(account: Account, files: readonly string[]): number {
  const program = isSingleExecutable() ? [] : [realpathSync(cliProcess().argv[1] ?? '')]
  const { error, status } = spawnSync(process.execPath, [...program, ...cliProcess().argv.slice(2)], {
    ...account,
    env: { ...cliProcess().env, ...(files[0] === undefined ? {} : { SVC_CONFIG_FILE: absolutePath(files[0]) }) },
    stdio: 'inherit',
  })
  if (error !== undefined) {
    throw new CliFailure(`This command cannot be run as the account ${account.uid}: ${error.message}`)
  }
  return status ?? exitCodes.failed
}
