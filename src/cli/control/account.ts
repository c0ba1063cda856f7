/** Runs a command of root as the account that owns the files. */
import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { absolutePath, cliProcess } from '../cli-process.ts'
import type { Account } from '../../lib/process/index.ts'
import { isSingleExecutable } from '../../core/bundle.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'

/**
 * Runs this command line again as the account, with only the permissions of that account.
 *
 * @param files of the configuration; the account might not find them from the current directory
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
    throw new CliFailure(`Cannot run this command as the account ${account.uid}: ${error.message}`)
  }
  return status ?? exitCodes.failed
}
