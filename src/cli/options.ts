/** Options that many commands share. */
import { InvalidArgumentError, Option } from 'commander'
import type { CliCommand } from './command.ts'
import { fileRows, settingRows, type ConnectionFlags, type SettingRow } from './connection/setting-rows.ts'
import { commonGroup } from './option-length.ts'

export interface CommonFlags extends ConnectionFlags {
  json?: boolean
  yaml?: boolean
}

type OptionRow = Omit<SettingRow, 'section' | 'name'>

/** The credential options; `optionRows` holds all options in display order. */
const credentialFlags: readonly (keyof ConnectionFlags)[] = ['token', 'apiKey']
const optionRows: readonly OptionRow[] = [...settingRows, ...fileRows]

/** The options of `svc` itself. Every command takes them too, so that they may stand anywhere on the line. */
function createGlobalOptions(): Option[] {
  return optionRows.flatMap(({ flag, term, about, kind, default: usual, defaultText = usual }) =>
    term === undefined || flag === undefined || credentialFlags.includes(flag)
      ? []
      : [
          new Option(
            term,
            defaultText === undefined || kind === 'boolean' ? about : `${about} (default: ${defaultText})`,
          ),
        ],
  )
}

function createCredentialOptions(): Option[] {
  return optionRows.flatMap(({ flag, term, about, env }) =>
    term !== undefined && flag !== undefined && credentialFlags.includes(flag)
      ? [new Option(term, `${about} (environment: ${env})`)]
      : [],
  )
}

/** Adds the flags of `svc` itself. */
export function addGlobalOptions(program: CliCommand): CliCommand {
  for (const option of createGlobalOptions()) program.addOption(option)
  for (const option of createCredentialOptions()) program.addOption(option)
  return program
    .option('--version', 'print the version of this client and of the server')
    .option('--print-config', 'print the effective configuration and exit with code 3')
}

/** Adds the options of every client command: credentials, machine output and, hidden from help, the global options. */
export function addCommonOptions(command: CliCommand): CliCommand {
  for (const option of createCredentialOptions()) command.addOption(option.helpGroup(commonGroup))
  return addOutputOptions(command)
}

/** As `addCommonOptions`, without the configuration file of the client. */
export function addCommonOptionsWithoutFile(command: CliCommand): CliCommand {
  for (const option of createCredentialOptions()) command.addOption(option.helpGroup(commonGroup))
  return addOutputOptions(command, '--config-file')
}

/** Adds the options of a command that logs in; such a command may use `-t` for something else. */
export function addLoginOptions(command: CliCommand): CliCommand {
  return addPasswordOption(addCommonOptionsWithoutT(command)).option(
    '-l, --ttl <seconds>',
    'lifetime of the token in seconds; default: set by the server',
    parseSeconds,
  )
}

/** As `addCommonOptions`, for a command for which `-t` means something else. */
export function addCommonOptionsWithoutT(command: CliCommand): CliCommand {
  for (const { flags } of createCredentialOptions()) {
    command.addOption(new Option(flags.replace(/^-\w, /, '')).hideHelp())
  }
  return addOutputOptions(command)
}

export function addPasswordOption(command: CliCommand): CliCommand {
  return command.option(
    '-p, --password <password>',
    'password; visible to other users of this machine in the process list',
  )
}

/** @param excluded long name of a global option that the command defines itself */
function addOutputOptions(command: CliCommand, excluded?: string): CliCommand {
  command
    .addOption(new Option('-j, --json', 'print JSON').conflicts('yaml').helpGroup(commonGroup))
    .addOption(new Option('-y, --yaml', 'print YAML').helpGroup(commonGroup))
  for (const option of createGlobalOptions()) if (option.long !== excluded) command.addOption(option.hideHelp())
  return command
}

/** Adds the options of a list: how many, which columns, how wide. */
export function addListOptions(command: CliCommand): CliCommand {
  return addWidthOption(
    command
      .option('-n, --last <count>', 'number of items to print; -1: all (default: 50)', parseLast)
      .option('-a, --attr <name...>', 'attributes to print, such as id or action.ref; all: every attribute'),
  )
}

/** A range of time, as `addTimeOptions` adds it. */
export interface TimeFlags {
  timestampGt?: string
  timestampLt?: string
}

/** Adds a range of time. @param what the plural noun and verb of the description, such as `executions started` */
export function addTimeOptions(command: CliCommand, what: string): CliCommand {
  return command
    .option('--timestamp-gt <time>', `only ${what} after this time, such as 2030-01-01T00:00:00Z`)
    .option('--timestamp-lt <time>', `only ${what} before this time`)
    .shortNames({ '-tg': '--timestamp-gt', '-tl': '--timestamp-lt' })
}

export interface WidthFlags {
  width?: number[]
}

export function addWidthOption(command: CliCommand): CliCommand {
  return command.option(
    '-w, --width <columns...>',
    'column widths in characters: one number for all columns, or one per column',
    collectWidth,
  )
}

/** Of `-n`. */
export function parseLast(text: string): number {
  if (!/^(-1|[1-9]\d{0,8})$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of 1 or more, or -1.')
  return Number(text)
}

export function parseSeconds(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds, 1 or more.')
  return Number(text)
}

function collectWidth(text: string, before: number[] | undefined): number[] {
  const widths = text.split(',').map((part) => {
    if (!/^[1-9]\d{0,3}$/.test(part)) throw new InvalidArgumentError('It must be a whole number from 1 to 9999.')
    return Number(part)
  })
  return [...(before ?? []), ...widths]
}

/** Attribute names from several words, comma separated words, or both; undefined when there are none. */
export function splitAttributes(words: string[] | undefined): string[] | undefined {
  const names = words?.flatMap((word) => word.split(',').map((name) => name.trim())).filter((name) => name !== '')
  return names?.length === 0 ? undefined : names
}
