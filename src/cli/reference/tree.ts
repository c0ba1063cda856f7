/** The command reference as data: the source of the manual page and `docs/cli.md`. */
import type { Command } from 'commander'
import { CliCommand, optionText, type ExampleFile } from '../command.ts'
import { commands, readCommand } from '../commands/index.ts'
import { addCommonOptions, addGlobalOptions } from '../options.ts'
import type { HelpTerm } from './text.ts'
import { topics, type Topic } from './topics.ts'

export interface CommandPage {
  /** Its name, such as `execution list`. */
  name: string
  /** For lists; the description where there is none. */
  summary: string
  /** In full, such as `svc pack remove`. */
  otherNames: readonly string[]
  /** Heading it stands under in `svc --help`; of sub-commands that of their command. */
  group: string
  description: string
  /** Such as `svc execution list [options]`. */
  usage: string
  arguments: readonly HelpTerm[]
  /** Of the command itself: those that all commands share are left out. */
  options: readonly HelpTerm[]
  notes: readonly string[]
  examples: readonly string[]
  samples: readonly ExampleFile[]
  children: readonly CommandPage[]
}

/** Every command with its sub-commands, in the order of `svc --help`. Loads all of them. */
export async function readTree(): Promise<CommandPage[]> {
  return Promise.all(
    commands.map(async (entry) => ({
      ...describe(await readCommand(entry), `svc ${entry.name}`, entry.group),
      summary: entry.summary,
    })),
  )
}

/** The commands without sub-commands. */
export function leavesOf(pages: readonly CommandPage[]): CommandPage[] {
  return pages.flatMap((page) => (page.children.length === 0 ? [page] : leavesOf(page.children)))
}

/** The whole command reference. */
export interface Reference {
  pages: readonly CommandPage[]
  /** Options of every command that connects to a server. */
  commonOptions: readonly HelpTerm[]
  /** Global options, which go before or after the command. */
  globalOptions: readonly HelpTerm[]
  topics: readonly Topic[]
}

export async function readReference(): Promise<Reference> {
  return { pages: await readTree(), commonOptions: readCommonOptions(), globalOptions: readGlobalOptions(), topics }
}

function readCommonOptions(): HelpTerm[] {
  return describeOptions(addCommonOptions(new CliCommand('')))
}

function readGlobalOptions(): HelpTerm[] {
  const common = new Set(readCommonOptions().map(({ term }) => term))
  return describeOptions(addGlobalOptions(new CliCommand(''))).filter(({ term }) => !common.has(term))
}

function describeOptions(command: CliCommand): HelpTerm[] {
  return command.options
    .filter(({ hidden }) => !hidden)
    .map((option) => ({ term: command.optionTerm(option), description: optionText(option) }))
}

function describe(command: Command, path: string, group: string): CommandPage {
  const help = command.createHelp()
  const own = command.options.filter((option) => !option.hidden && option.helpGroupHeading === undefined)
  const known = command instanceof CliCommand ? command : undefined
  return {
    name: path.replace(/^svc /, ''),
    summary: command.summary() || command.description(),
    otherNames: known?.otherNames ?? [],
    group: group.replace(/:$/, ''),
    description: command.description(),
    usage: `${path} ${command.usage()}`,
    arguments: command.registeredArguments.map((argument) => ({
      term: help.argumentTerm(argument),
      description: help.argumentDescription(argument),
    })),
    options: own.map((option) => ({
      term: known?.optionTerm(option) ?? option.flags,
      description: optionText(option),
    })),
    notes: known?.noteParagraphs ?? [],
    examples: known?.exampleLines ?? [],
    samples: known?.sampleFiles ?? [],
    children: command.commands.map((child) => describe(child, `${path} ${child.name()}`, group)),
  }
}
