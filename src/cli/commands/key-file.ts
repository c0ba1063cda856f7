/** `svc key generate-crypto-key`, also called `svc-generate-symmetric-crypto-key` (contract 10, 10.10). Asks no server. */
import { absolutePath, cliProcess } from '../cli-process.ts'
import { createSecretFile, replaceSecretFile } from '../../lib/files/index.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import type { CommandContext } from '../session.ts'

interface GenerateFlags {
  keyPath: string
  force?: boolean
}

export function createGenerateCommand(context: CommandContext): CliCommand {
  return new CliCommand('generate-crypto-key')
    .description('Make a file with a new key that encrypts secrets at rest.')
    .requiredOption('--key-path <path>', 'the file to make, with mode 0600')
    .option('--force', 'in place of a file that is there: what was encrypted with its keys can never be read again')
    .notes(
      'The server makes such a file by itself, `keys/secrets.json` in its base path, when the first secret is stored. This command is for those who keep it elsewhere: `encryption_key_path` in the section `keyvalue` of the configuration names it then. Keep a copy of it.',
      'It ends with 2 when the file is there, and with 1 when it cannot be written.',
      'Also called svc-generate-symmetric-crypto-key.',
    )
    .examples('svc key generate-crypto-key --key-path /etc/svc/keys/secrets.json')
    .action(async ({ keyPath, force = false }: GenerateFlags) => {
      const path = absolutePath(keyPath)
      const isThere = !(await writeKeys(path, force))
      if (isThere) {
        throw new CliFailure(
          `${path} is there already. What was encrypted with its keys could not be read any more; --force replaces it all the same.`,
          exitCodes.usage,
        )
      }
      cliProcess().stdout.write(`Made ${path} with a new key.\n`)
      context.setExitCode(exitCodes.ok)
    })
}

/** @returns false: there is such a file, and it is as it was @throws CliFailure */
async function writeKeys(path: string, force: boolean): Promise<boolean> {
  try {
    // No other command needs what comes with it.
    const { newKeyFile } = await import('../../core/encryption.ts')
    if (!force) return await createSecretFile(path, newKeyFile())
    await replaceSecretFile(path, newKeyFile())
    return true
  } catch (error) {
    throw new CliFailure(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  }
}
