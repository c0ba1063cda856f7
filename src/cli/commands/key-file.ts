/** `svc key generate-crypto-key`, also called `svc-generate-symmetric-crypto-key` (contract 10, 10.10). Needs no server. */
import { absolutePath, cliProcess } from '../cli-process.ts'
import { createSecretFile, describeFileError, replaceSecretFile } from '../../lib/files/index.ts'
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
    .description('Create a key file that encrypts secrets at rest.')
    .requiredOption('--key-path <path>', 'file to create, with mode 0600')
    .option('--force', 'replace an existing file; secrets encrypted with its keys become unreadable')
    .notes(
      'The server creates `keys/secrets.json` in its base path when it stores the first secret. Use this command to keep the file elsewhere, and set `encryption_key_path` in the section `keyvalue` of the configuration. Keep a copy of the file.',
      'The exit code is 2 when the file exists, and 1 when it cannot be written.',
      'Also called svc-generate-symmetric-crypto-key.',
    )
    .examples('svc key generate-crypto-key --key-path /etc/svc/keys/secrets.json')
    .action(async ({ keyPath, force = false }: GenerateFlags) => {
      const path = absolutePath(keyPath)
      const isThere = !(await writeKeys(path, force))
      if (isThere) {
        throw new CliFailure(
          `${path} already exists. Secrets encrypted with its keys would become unreadable; to replace it anyway, use --force.`,
          exitCodes.usage,
        )
      }
      cliProcess().stdout.write(`Created ${path} with a new key.\n`)
      context.setExitCode(exitCodes.ok)
    })
}

/** @returns false: the file exists, and is unchanged @throws CliFailure */
async function writeKeys(path: string, force: boolean): Promise<boolean> {
  try {
    // Loaded here only: no other command needs it.
    const { newKeyFile } = await import('../../core/encryption.ts')
    if (!force) return await createSecretFile(path, newKeyFile())
    await replaceSecretFile(path, newKeyFile())
    return true
  } catch (error) {
    throw new CliFailure(`Cannot write ${path}: ${describeFileError(path, error)}`)
  }
}
