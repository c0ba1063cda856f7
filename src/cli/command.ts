/**
 * A command of the client: its commander definition plus examples, notes and samples. Help, the manual page,
 * `docs/cli.md` and completion are all made from it (`reference/`).
 */
import { styleText } from 'node:util'
import { Command, Option, type ErrorOptions, type Help, type OutputConfiguration } from 'commander'
import { canStyle, cliProcess, widthOf } from './cli-process.ts'
import { UnknownCommand } from './failures.ts'
import type { Completions } from './names.ts'
import { optionLength, commonGroup } from './option-length.ts'
import { printable } from './output/print.ts'
import { descriptionColumn, indentText, renderParagraph, renderTerms, usableWidth } from './reference/screen.ts'
import type { HelpTerm } from './reference/text.ts'

/** A file that an example uses. */
export interface ExampleFile {
  name: string
  text: string
}

/** How commander writes, and for how wide a terminal. */
const streams: OutputConfiguration = {
  writeOut: (text) => void cliProcess().stdout.write(text),
  writeErr: (text) => void cliProcess().stderr.write(text),
  getOutHelpWidth: () => widthOf(cliProcess().stdout) ?? 80,
  getErrHelpWidth: () => widthOf(cliProcess().stderr) ?? 80,
  getOutHasColors: () => canStyle(cliProcess().stdout),
  getErrHasColors: () => canStyle(cliProcess().stderr),
}

export class CliCommand extends Command {
  readonly #examples: string[] = []
  readonly #notes: string[] = []
  readonly #samples: ExampleFile[] = []
  readonly #footer: string[] = []
  readonly #shortNames = new Map<string, string>()
  readonly #lists: { title: string; items: readonly HelpTerm[] }[] = []
  #listsExamples = false
  readonly #completions = new Map<string, Completions>()

  constructor(name: string) {
    super(name)
    this.exitOverride()
      .enablePositionalOptions()
      .addHelpOption(new Option('-h, --help', 'show this help').helpGroup(commonGroup))
      .helpCommand(false)
      .configureOutput({ outputError: (text, write) => write(printable(text)), ...streams })
      .showHelpAfterError('(--help shows the usage of the command)')
      .configureHelp({
        styleTitle: (title) => styleText('bold', title, { validateStream: false }),
        formatHelp: (_command, help) => this.#help(help),
      })
  }

  /** Example command lines. `svc --help` shows the first one. */
  examples(...lines: string[]): this {
    this.#examples.push(...lines)
    return this
  }

  /** Paragraphs below the options, for facts that do not fit beside an argument or option. */
  notes(...paragraphs: string[]): this {
    this.#notes.push(...paragraphs)
    return this
  }

  /** The content of a file that an example names. */
  sample(name: string, text: string): this {
    this.#samples.push({ name, text })
    return this
  }

  /**
   * Short names of several letters, such as `-tg` for `--timestamp-gt`, which commander would take for `-t g`.
   *
   * @param names short name → long name
   */
  shortNames(names: Readonly<Record<string, string>>): this {
    for (const [short, long] of Object.entries(names)) this.#shortNames.set(short, long)
    return this
  }

  /**
   * What completion offers for arguments and option values; sub-commands inherit it unless they override it. Not needed
   * where names say it, as `<file>`, `<pack>`, `--rule <ref>` and `<ref>` of `svc rule get` do (`names.ts`).
   *
   * @param completions name of an argument, such as `ref`, or of an option, such as `--rule` → what it may be
   */
  completions(completions: Readonly<Record<string, Completions>>): this {
    for (const [name, each] of Object.entries(completions)) this.#completions.set(name, each)
    return this
  }

  /** The `completions` of an argument or option; undefined when there are none. */
  completionsOf(name: string): Completions | undefined {
    return (
      this.#completions.get(name) ?? (this.parent instanceof CliCommand ? this.parent.completionsOf(name) : undefined)
    )
  }

  get exampleLines(): readonly string[] {
    return this.#examples
  }

  get noteParagraphs(): readonly string[] {
    return this.#notes
  }

  get sampleFiles(): readonly ExampleFile[] {
    return this.#samples
  }

  /** How an option is written, such as `-tg, --timestamp-gt <time>`. */
  optionTerm({ flags, long }: Option): string {
    const short = [...this.#shortNames].find(([, name]) => name === long)?.[0]
    return short === undefined ? flags : `${short}, ${flags}`
  }

  /** The short names of several letters with what they are short for. */
  get severalLetters(): ReadonlyMap<string, string> {
    return this.#shortNames
  }

  override parseOptions(argv: string[]): ReturnType<Command['parseOptions']> {
    const args = [...argv]
    const options: string[] = []
    const operands: string[] = []
    let index = 0
    while (index < args.length && args[index] !== '--') {
      args[index] = this.withLongName(args[index] ?? '')
      const length = this.optionLength(args, index)
      // What follows a sub-command is read by that.
      if (length === 0 && this.commands.length > 0) return super.parseOptions(args)
      if (length === 0) operands.push(args[index] ?? '')
      options.push(...args.slice(index, index + length))
      index += Math.max(1, length)
    }
    operands.push(...args.slice(index + 1))
    return { operands, unknown: super.parseOptions(options).unknown }
  }

  /** How many arguments from `index` on belong to the option there; 0 when there is an operand. */
  optionLength(args: readonly string[], index: number): number {
    return this.#isText(args[index] ?? '') ? 0 : optionLength(args, index, this.options)
  }

  /** Whether a word starts like an option but contains blanks, as a key in PEM form does. No option name has a blank. */
  #isText(arg: string): boolean {
    return /^-[^=]*\s/.test(arg) && !this.options.some(({ short }) => short === arg.slice(0, 2))
  }

  /**
   * An argument with the long name of an option in place of a short one of several letters, of one with its value after `=`,
   * as in `-n=5`, or of one that is spelled with `_` for `-` or the other way round: scripts have `--trace_tag` as well as
   * `--trace-tag`.
   */
  withLongName(arg: string): string {
    const [name = ''] = arg.split('=', 1)
    const longName = this.#shortNames.get(name) ?? this.#spelledOtherwise(name) ?? this.#withValue(name, arg)
    return longName === undefined ? arg : `${longName}${arg.slice(name.length)}`
  }

  #withValue(name: string, arg: string): string | undefined {
    if (name === arg) return undefined
    return this.options.find(({ short, required }) => short === name && required)?.long ?? undefined
  }

  #spelledOtherwise(name: string): string | undefined {
    if (!name.startsWith('--') || this.options.some(({ long }) => long === name)) return undefined
    const plain = name.replaceAll('_', '-')
    return this.options.find(({ long }) => long?.replaceAll('_', '-') === plain)?.long
  }

  /** Refuses arguments. @throws UnknownCommand, CommanderError */
  override error(message: string, options?: ErrorOptions): never {
    if (options?.code === 'commander.unknownCommand') {
      const names = this.createHelp().visibleCommands(this).flatMap(namesOf)
      throw new UnknownCommand(this.#path, this.args, names)
    }
    return super.error(printable(message), options)
  }

  /** The other names it can be called by, in full. */
  get otherNames(): string[] {
    return this.aliases().map((alias) => this.#path.replace(/[^ ]+$/, alias))
  }

  /** Adds a list to the help, between commands and options. */
  list(title: string, items: readonly HelpTerm[]): this {
    this.#lists.push({ title, items })
    return this
  }

  /** Shows the first example of each command, as `svc --help` does. */
  listExamples(): this {
    this.#listsExamples = true
    return this
  }

  /** Paragraphs at the end of the help. */
  footer(...paragraphs: string[]): this {
    this.#footer.push(...paragraphs)
    return this
  }

  get #path(): string {
    const { parent } = this
    return parent instanceof CliCommand ? `${parent.#path} ${this.name()}` : this.name()
  }

  #help(help: Help): string {
    const width = usableWidth(help.helpWidth ?? 80)
    const section = (title: string, body: string): string[] =>
      body === '' ? [] : [`${help.styleTitle(title)}\n${body}`]
    const operands = help.visibleArguments(this).map((argument) => ({
      term: help.argumentTerm(argument),
      description: help.argumentDescription(argument),
    }))
    const groups = groupOptions(help.visibleOptions(this)).map(([title, options]) => ({
      title,
      items: [
        ...options.map((option) => ({ term: this.optionTerm(option), description: optionText(option) })),
        ...(title === commonGroup ? [furtherOptions] : []),
      ],
    }))
    const column = descriptionColumn([...operands, ...groups.flatMap(({ items }) => items)].map(({ term }) => term))
    const parts = [
      `${help.styleTitle('Usage:')} ${this.#path} ${this.usage()}`,
      renderParagraph(this.description(), width),
      ...(this.otherNames.length === 0 ? [] : [`Also called: ${this.otherNames.join(', ')}`]),
      ...this.#commandSections(help, width).flatMap(({ title, body }) => section(title, body)),
      ...this.#lists.flatMap(({ title, items }) => section(title, renderTerms(items, width))),
      ...section('Arguments:', renderTerms(operands, width, column)),
      ...groups.flatMap(({ title, items }) => section(title, renderTerms(items, width, column))),
      ...this.#notes.map((note) => renderParagraph(note, width)),
      ...section(
        this.#examples.length === 1 ? 'Example:' : 'Examples:',
        this.#listsExamples ? '' : indentText(this.#examples.join('\n'), 2),
      ),
      ...this.#samples.flatMap(({ name, text }) => section(`${name}:`, indentText(text, 2))),
      ...this.#footer.map((text) => renderParagraph(text, width)),
    ]
    return `${parts.join('\n\n')}\n`
  }

  #commandSections(help: Help, width: number): { title: string; body: string }[] {
    const known = help.visibleCommands(this).filter((command) => command instanceof CliCommand)
    const termOf = (command: CliCommand): string =>
      this.#listsExamples ? command.name() : `${namesOf(command).join(', ')}${operandsOf(command)}`
    const column = descriptionColumn(known.map(termOf))
    const titles = [...new Set(known.map((command) => command.helpGroup()))]
    return titles.map((title) => ({
      title: title === '' ? 'Commands:' : title,
      body: known
        .filter((command) => command.helpGroup() === title)
        .flatMap((command) => [
          renderTerms(
            [{ term: termOf(command), description: command.summary() || command.description() }],
            width,
            column,
          ),
          ...(this.#listsExamples ? command.exampleLines.slice(0, 1).map((line) => indentText(line, 4)) : []),
        ])
        .join('\n'),
    }))
  }
}

/** Global options are the same for every command, so help does not repeat them. */
const furtherOptions: HelpTerm = {
  term: '--url, --debug, ...',
  description: 'global options; see: svc help configuration',
}

/** The name of a command, then its aliases. */
export function namesOf(command: Command): string[] {
  return [command.name(), ...command.aliases()]
}

/** The sub-command of that name. */
export function findChild(command: Command, name: string): Command | undefined {
  return command.commands.find((child) => namesOf(child).includes(name))
}

function operandsOf(command: Command): string {
  return command.registeredArguments
    .map((argument) => {
      const word = `${argument.name()}${argument.variadic ? '...' : ''}`
      return argument.required ? ` <${word}>` : ` [${word}]`
    })
    .join('')
}

/** Options of the command itself go before those that all commands have. */
function groupOptions(options: readonly Option[]): [title: string, options: Option[]][] {
  const groups = new Map<string, Option[]>()
  for (const option of options) {
    const title = option.helpGroupHeading ?? 'Options:'
    groups.set(title, [...(groups.get(title) ?? []), option])
  }
  const common = groups.get(commonGroup)
  if (common === undefined) return [...groups]
  groups.delete(commonGroup)
  const own = groups.get('Options:') ?? []
  // A single one, such as --help, needs no heading of its own.
  return common.length > 1 ? [...groups, [commonGroup, common]] : [...groups.set('Options:', [...own, ...common])]
}

/** The description of an option with its choices and its default. */
export function optionText({ description, argChoices, defaultValue, defaultValueDescription }: Option): string {
  const facts = [
    ...(argChoices === undefined ? [] : [argChoices.join(', ')]),
    ...(defaultValue === undefined || Array.isArray(defaultValue) || typeof defaultValue === 'boolean'
      ? []
      : [`default: ${defaultValueDescription ?? String(defaultValue)}`]),
  ]
  return facts.length === 0 ? description : `${description} (${facts.join('; ')})`
}
