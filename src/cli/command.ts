/**
 * A command of the client: what commander knows of it, and what else is told to those who use it. Help, the manual page,
 * `docs/cli.md` and completion are all made from it (`reference/`).
 */
import { Command, Help, type Option } from 'commander'

/** A file that an example speaks of. */
export interface Sample {
  name: string
  text: string
}

export class CliCommand extends Command {
  readonly #examples: string[] = []
  readonly #notes: string[] = []
  readonly #samples: Sample[] = []
  readonly #shortNames = new Map<string, string>()

  constructor(name: string) {
    super(name)
    this.exitOverride()
      .enablePositionalOptions()
      .helpOption('-h, --help', 'show this help')
      .helpCommand(false)
      .showHelpAfterError('(--help shows how the command is used)')
      .configureHelp({ optionTerm: (option) => this.optionTerm(option), groupItems: ownGroupFirst })
      .addHelpText('after', () => this.#afterHelp())
  }

  /** Command lines as they would be typed. The first one tells most. */
  examples(...lines: string[]): this {
    this.#examples.push(...lines)
    return this
  }

  /** What does not fit beside an argument or option; a paragraph each. */
  notes(...paragraphs: string[]): this {
    this.#notes.push(...paragraphs)
    return this
  }

  /** What is in a file that an example names. */
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

  get exampleLines(): readonly string[] {
    return this.#examples
  }

  get noteParagraphs(): readonly string[] {
    return this.#notes
  }

  get sampleFiles(): readonly Sample[] {
    return this.#samples
  }

  /** How an option is written, such as `-tg, --timestamp-gt <time>`. */
  optionTerm({ flags, long }: Option): string {
    const short = [...this.#shortNames].find(([, name]) => name === long)?.[0]
    return short === undefined ? flags : `${short}, ${flags}`
  }

  override parseOptions(argv: string[]): ReturnType<Command['parseOptions']> {
    return super.parseOptions(
      argv.map((arg) => {
        const [name = ''] = arg.split('=', 1)
        const longName = this.#shortNames.get(name)
        return longName === undefined ? arg : `${longName}${arg.slice(name.length)}`
      }),
    )
  }

  #afterHelp(): string {
    const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ')
    const parts = [
      ...this.#notes,
      ...(this.#examples.length === 0
        ? []
        : [`${this.#examples.length === 1 ? 'Example' : 'Examples'}:\n${indent(this.#examples.join('\n'))}`]),
      ...this.#samples.map(({ name, text }) => `${name}:\n${indent(text)}`),
    ]
    return parts.map((part) => `\n${part}`).join('\n')
  }
}

/** What is particular about a command goes before what all have in common. */
const ownGroupFirst: Help['groupItems'] = (...args) => {
  const groups = new Help().groupItems(...args)
  const own = groups.get('Options:')
  return own === undefined ? groups : new Map([['Options:', own], ...groups])
}
