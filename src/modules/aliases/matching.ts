/** Which alias a chat command means, among all that are enabled. */
import { aliasAmbiguous, aliasDisabled, aliasUnknown, formatUnknown } from '../../core/errors.ts'
import {
  commandAmbiguous,
  commandRefused,
  commandUnfit,
  commandUnmatched,
  commandWithoutValue,
} from '../../core/errors.ts'
import { Lru } from '../../lib/cache/index.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import { BudgetExhausted, type Budget } from '../../lib/template/index.ts'
import { shown } from '../../lib/text/index.ts'
import {
  compileFormat,
  createCommandBudget,
  MAX_FINDS,
  parseFormat,
  type CommandParameters,
  type CompiledFormat,
} from './format.ts'
import type { AliasStore } from './store.ts'
import type { AliasRecord } from './types.ts'

/** One text that commands are compared with. */
export interface Representation {
  readonly alias: AliasRecord
  /** How help shows it. */
  readonly display: string
  readonly text: string
  /** Every place in a command that fits is an execution. */
  readonly isMultiple: boolean
}

export interface Matching {
  /** Every text of every enabled alias, in the order of pack and name. */
  all(): readonly Representation[]
  /** The one that a command fits. @throws COMMAND_UNMATCHED, COMMAND_AMBIGUOUS */
  find(command: string): Promise<Representation>
  /** A text of an alias that the caller knows. @throws ALIAS_UNKNOWN, ALIAS_AMBIGUOUS, ALIAS_DISABLED, FORMAT_UNKNOWN */
  named(nameOrRef: string, format: string): Representation
  /** Parameters of each execution that a command asks for; at least one. @throws COMMAND_UNMATCHED */
  read(representation: Representation, command: string): CommandParameters[]
  /** An alias has changed. @param isGone it is deleted */
  note(alias: AliasRecord, isGone: boolean): void
}

/** Formats of the alias in their order. */
function representationsOf(alias: AliasRecord): Representation[] {
  return alias.formats.flatMap((format) => {
    if (typeof format === 'string') return [{ alias, display: format, text: format, isMultiple: false }]
    const { representation, match_multiple: isMultiple = false } = format
    const display = format.display ?? representation[0] ?? ''
    return representation.map((text) => ({ alias, display, text, isMultiple }))
  })
}

interface Candidate extends Representation {
  /** Undefined: it is no format, which its registration has said. */
  readonly prefix: string | undefined
}

function toCandidate(representation: Representation): Candidate {
  try {
    return { ...representation, prefix: parseFormat(representation.text).prefix }
  } catch {
    return { ...representation, prefix: undefined }
  }
}

const candidatesOf = (alias: AliasRecord): Candidate[] =>
  alias.enabled ? representationsOf(alias).map(toCandidate) : []

function byPackAndName({ alias: one }: Representation, { alias: other }: Representation): number {
  if (one.pack !== other.pack) return one.pack < other.pack ? -1 : 1
  return one.name === other.name ? 0 : one.name < other.name ? -1 : 1
}

/** Formats that stay compiled. An instruction takes some 200 bytes; a usual format has 50 to 150. */
const MAX_COMPILED = 20_000
const MAX_COMPILED_INSTRUCTIONS = 1024 * 1024

export function createMatching(store: Pick<AliasStore, 'list' | 'findByRef' | 'named'>): Matching {
  /** By the id of the alias; undefined: nobody has asked yet. */
  let known: Map<string, Candidate[]> | undefined
  let inOrder: readonly Candidate[] | undefined
  const compiled = new Lru<string, { readonly format: CompiledFormat | undefined }>(
    MAX_COMPILED,
    MAX_COMPILED_INSTRUCTIONS,
  )

  /** Undefined: it is no format. */
  function compile(text: string): CompiledFormat | undefined {
    const kept = compiled.get(text)
    if (kept !== undefined) return kept.format
    let format: CompiledFormat | undefined
    try {
      format = compileFormat(text)
    } catch {
      // Its registration has said so.
    }
    compiled.set(text, { format }, format?.size)
    return format
  }

  function candidates(): readonly Candidate[] {
    known ??= new Map(store.list({}, { limit: undefined, offset: 0 }).map((alias) => [alias.id, candidatesOf(alias)]))
    inOrder ??= [...known.values()].flat().toSorted(byPackAndName)
    return inOrder
  }

  function fits({ text, prefix, isMultiple }: Candidate, command: string, budget: Budget): boolean {
    if (prefix === undefined) return false
    if (isMultiple) return (compile(text)?.find(command, budget).length ?? 0) > 0
    if (!command.trimStart().startsWith(prefix)) return false
    return compile(text)?.match(command, budget) !== undefined
  }

  async function fitting(command: string, isMultiple: boolean, budget: Budget): Promise<Candidate[]> {
    const pause = createPause()
    const found: Candidate[] = []
    let tooLong: BudgetExhausted | undefined
    for (const candidate of candidates()) {
      if (candidate.isMultiple !== isMultiple) continue
      await pause()
      try {
        if (fits(candidate, command, budget)) found.push(candidate)
      } catch (error) {
        if (!(error instanceof BudgetExhausted)) throw error
        tooLong = error
      }
    }
    // A command that fits another format needs no more.
    if (found.length === 0 && tooLong !== undefined) throw commandRefused(tooLong.message)
    return found
  }

  return {
    all: candidates,
    // The formats of the others stay compiled: that of thousands takes seconds.
    note(alias, isGone) {
      if (isGone) known?.delete(alias.id)
      else known?.set(alias.id, candidatesOf(alias))
      inOrder = undefined
    },

    async find(command) {
      const budget = createCommandBudget()
      for (const isMultiple of [false, true]) {
        const found = await fitting(command, isMultiple, budget)
        const [first] = found
        if (first !== undefined && found.length === 1) return first
        if (first !== undefined) {
          const formats = found.slice(0, 10).map(({ alias, text }) => `"${shown(text)}" of ${alias.ref}`)
          throw commandAmbiguous(command, formats.join(', '), isMultiple)
        }
      }
      throw commandUnmatched(command)
    },

    named(nameOrRef, format) {
      const one = store.findByRef(nameOrRef)
      const aliases = one === undefined ? store.named(nameOrRef) : [one]
      if (aliases.length === 0) throw aliasUnknown(nameOrRef)
      const all = aliases.flatMap((alias) => representationsOf(alias).filter(({ text }) => text === format))
      const [first] = all
      const refs = new Set((all.length > 0 ? all.map(({ alias }) => alias) : aliases).map(({ ref }) => ref))
      if (refs.size > 1) throw aliasAmbiguous(nameOrRef, [...refs].join(', '))
      const [alias] = aliases
      if (alias !== undefined && !(first?.alias ?? alias).enabled) throw aliasDisabled(nameOrRef)
      if (first === undefined) throw formatUnknown(format, nameOrRef)
      return first
    },

    read(representation, command) {
      const { text, isMultiple } = representation
      const budget = createCommandBudget()
      try {
        const format = compile(text)
        if (format === undefined) throw commandUnfit(command, text)
        if (isMultiple) {
          const found = format.find(command, budget)
          if (found.length > MAX_FINDS) throw commandRefused(`the command asks for more than ${MAX_FINDS} executions`)
          if (found.length > 0) return found
        } else {
          const parameters = format.match(command, budget)
          if (parameters !== undefined) return [parameters]
        }
      } catch (error) {
        if (error instanceof BudgetExhausted) throw commandRefused(error.message)
        throw error
      }
      const hasDefault = parseFormat(text).captures.some((capture) => capture.default !== undefined)
      if (command.trim() === '' && !hasDefault) throw commandWithoutValue()
      throw commandUnfit(command, text)
    },
  }
}
