/**
 * `svc pack validate` and `validate-config` (contract 10, 10.10): checks a pack. A temporary server of its own registers it,
 * so the result is the same as on a real server.
 */
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { absolutePath } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { withTrialServer } from '../control/trial-server.ts'
import { CliFailure } from '../failures.ts'
import { readFileBytes } from '../input/text-file.ts'
import type { CommandContext } from '../session.ts'
import { registerPacks } from './pack-install.ts'

interface ConfigFlags {
  schemaPath: string
  configPath: string
}

/** The limit of the server for either file. */
const MAX_FILE_BYTES = 1_048_576
/** Others come with the program. */
const packKinds = ['trigger', 'sensor', 'action', 'rule', 'alias', 'policy', 'config']

export function createValidateCommand(context: CommandContext): CliCommand {
  return new CliCommand('validate')
    .description('Validate the content of a pack directory. No server is needed or changed.')
    .argument('<folder>', 'directory of the pack')
    .completions({ folder: 'file' })
    .notes(
      'The command prints the count of each kind, and invalid content on standard error with file, line and key. The exit code is 1 when some content is invalid.',
      'Only the packs that are part of svc are known: a rule for a trigger of any other pack is reported as a problem.',
      'Also called svc-validate-pack.',
    )
    .examples('svc pack validate ./my-pack')
    .action((folder: string) => {
      // Any other directory may be too large to copy.
      if (!existsSync(join(absolutePath(folder), 'pack.yaml')))
        throw new CliFailure(`${folder} is not a pack directory: it has no pack.yaml.`)
      const name = basename(absolutePath(folder))
      return withThrowawayServer(context, name, packKinds, (place) =>
        cpSync(absolutePath(folder), place, {
          recursive: true,
          verbatimSymlinks: true,
          filter: (path) => basename(path) !== '.git',
        }),
      )
    })
}

export function createValidateConfigCommand(context: CommandContext): CliCommand {
  return new CliCommand('validate-config')
    .description('Validate a configuration against the schema of a pack.')
    .requiredOption('--schema-path <file>', 'schema file: config.schema.yaml of the pack')
    .requiredOption('--config-path <file>', 'configuration file')
    .notes(
      'The exit code is 1 when the configuration is invalid, and 2 when a file cannot be read. Also called svc-validate-pack-config.',
    )
    .examples('svc pack validate-config --schema-path web/config.schema.yaml --config-path web.yaml')
    .action(async ({ schemaPath, configPath }: ConfigFlags) => {
      const schema = await readFileBytes(schemaPath, MAX_FILE_BYTES)
      const config = await readFileBytes(configPath, MAX_FILE_BYTES)
      const name = basename(configPath, extname(configPath)).replace(/[^a-z0-9_]/g, '_') || 'pack'
      await withThrowawayServer(context, name, ['config'], (place, base) => {
        for (const each of [place, join(base, 'configs')]) mkdirSync(each, { recursive: true })
        writeFileSync(
          join(place, 'pack.yaml'),
          `name: ${name}\nref: ${name}\ndescription: ''\nversion: 1.0.0\nauthor: ''\n`,
        )
        writeFileSync(join(place, 'config.schema.yaml'), schema)
        writeFileSync(join(base, 'configs', `${name}.yaml`), config)
      })
    })
}

/** @param prepare puts the pack into its place, and its configuration into the base path */
function withThrowawayServer(
  context: CommandContext,
  pack: string,
  types: string[],
  prepare: (place: string, basePath: string) => void,
): Promise<void> {
  const place = (base: string): string => join(base, 'packs', pack)
  return withTrialServer(context, { prepare: (base) => prepare(place(base), base) }, (session, base) =>
    registerPacks(session, [place(base)], { types, failOnFailure: true }),
  )
}
