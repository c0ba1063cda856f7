/** Which overload of a function a call means. */
import type { Argument, Expression, RuleNode } from './ast.ts'
import type { Overload } from './signature.ts'
import { isSpecial, type ParameterType } from './types.ts'
import { adopt, type Value } from './values.ts'

/** Overloads of one name: those that are nearer to the expression first, each layer hiding the next where one fits. */
export type Layers = readonly (readonly Overload<unknown>[])[]

/** Where a parameter gets its value: from one argument, from several, or from its default. */
type Source = number | readonly number[] | ReadonlyMap<string, number> | undefined

export interface Candidate {
  readonly overload: Overload<unknown>
  /** One per parameter; arguments count from 0, the receiver included. */
  readonly sources: readonly Source[]
  /** For each argument: the type of the parameter that takes it. */
  readonly types: readonly ParameterType<unknown>[]
}

/** An argument that is not evaluated yet; undefined: its value is known. */
type Node = Expression | RuleNode | undefined

/** What can be said about a call before its arguments are evaluated. */
export class CallPlan {
  readonly layers: Layers
  /** How many of the first arguments are given as values, such as the receiver of a method. */
  readonly given: number
  /** Positional arguments, then those by name. */
  readonly nodes: readonly Node[]
  readonly candidates: readonly (readonly Candidate[])[]

  constructor(layers: Layers, given: number, nodes: readonly Node[], candidates: readonly (readonly Candidate[])[]) {
    this.layers = layers
    this.given = given
    this.nodes = nodes
    this.candidates = candidates
  }
}

/**
 * A rule whose key cannot be the name of a parameter; with a message: the name of an argument that cannot be given by name.
 */
export class NotAName extends Error {}

/**
 * Drops the overloads that do not fit the number, the names and the constants among the arguments.
 *
 * @param given how many arguments come before those with a node, as values
 */
export function planCall(layers: Layers, args: readonly Argument[], given: number): CallPlan {
  const takesRules = layers.some((layer) => layer.some((overload) => overload.takesRules))
  const nodes: Node[] = Array.from({ length: given }, () => undefined)
  const empty = new Set<number>()
  const named = new Map<string, number>()
  for (const argument of args) {
    if (argument.kind === 'empty') {
      empty.add(nodes.length)
      nodes.push(undefined)
    } else if (argument.kind !== 'rule') nodes.push(argument)
    else if (takesRules) {
      const { key } = argument
      if (argument.isNamed === true && key.kind === 'constant' && typeof key.value === 'string') {
        throw new NotAName(key.value)
      }
      nodes.push(argument)
    }
  }
  const positional = nodes.length
  if (!takesRules) {
    for (const argument of args) {
      if (argument.kind !== 'rule') continue
      const { key } = argument
      if (key.kind !== 'constant' || !key.isKeyword || typeof key.value !== 'string') throw new NotAName()
      named.set(key.value, nodes.length)
      nodes.push(argument.value)
    }
  }
  const supply: Supply = { nodes, empty, positional, named }
  const candidates = layers
    .map((layer) => layer.flatMap((overload) => fit(overload, supply) ?? []))
    .filter((layer) => layer.length > 0)
  return new CallPlan(layers, given, nodes, candidates)
}

interface Supply {
  nodes: readonly Node[]
  empty: ReadonlySet<number>
  positional: number
  named: ReadonlyMap<string, number>
}

function fit(overload: Overload<unknown>, { nodes, empty, positional, named }: Supply): Candidate | undefined {
  const sources: Source[] = []
  const types: ParameterType<unknown>[] = []
  const left = new Map(named)
  let next = 0
  const take = (index: number, type: ParameterType<unknown>): boolean => {
    types[index] = type
    return mayAccept(type, nodes[index], index < positional)
  }
  for (const { name, type, form, fallback } of overload.parameters) {
    if (form === 'rest') {
      const indexes: number[] = []
      for (; next < positional; next += 1) {
        if (empty.has(next) || !take(next, type)) return undefined
        indexes.push(next)
      }
      sources.push(indexes)
      continue
    }
    if (form === 'named') {
      for (const index of left.values()) if (!take(index, type)) return undefined
      sources.push(new Map(left))
      left.clear()
      continue
    }
    const byName = left.get(name)
    const byPosition = next < positional ? next : undefined
    if (byPosition !== undefined) next += 1
    const isGiven = byPosition !== undefined && !empty.has(byPosition)
    if (isGiven && byName !== undefined) return undefined
    left.delete(name)
    const index = isGiven ? byPosition : byName
    if (index === undefined) {
      if (fallback === undefined) return undefined
      if (byPosition !== undefined) types[byPosition] = type
    } else if (!take(index, type)) return undefined
    sources.push(index)
  }
  return next < positional || left.size > 0 ? undefined : { overload, sources, types }
}

/** Whether the type may accept what the expression gives; certain only for constants, by position. */
function mayAccept(type: ParameterType<unknown>, node: Node, isPositional: boolean): boolean {
  if (type.form === 'rule' || node?.kind === 'rule') return type.form === 'rule' && node?.kind === 'rule'
  const constant = node?.kind === 'constant' && node.isGrouped !== true ? node : undefined
  return type.form === 'lambda' || !isPositional || constant === undefined || type.accepts(adopt(constant.value))
}

/** Whether the first `count` arguments, which are evaluated, have the types that their parameters want. */
export function accepts(candidate: Candidate, values: readonly Value[], count: number): boolean {
  for (let index = 0; index < count; index += 1) {
    const type = candidate.types[index]
    if (type?.form === 'value' && !type.accepts(values[index] ?? null) && !isLeftOut(candidate, index)) return false
  }
  return true
}

/** An empty argument: its parameter has its default. */
function isLeftOut({ sources }: Candidate, index: number): boolean {
  return !sources.some((source) =>
    typeof source === 'object' ? [...source.values()].includes(index) : source === index,
  )
}

/** Whether both take every argument in the same form. */
export function takeAlike(first: Candidate, second: Candidate): boolean {
  return first.types.every(({ form }, index) => form === second.types[index]?.form)
}

/** Of two overloads that accept the arguments: whether the first one is made for them rather than the second. */
export function isSpecialization(first: Candidate, second: Candidate): boolean {
  let found = false
  for (const [index, type] of first.types.entries()) {
    const other = second.types[index]
    if (other === undefined) continue
    if (isSpecial(type, other)) found = true
    else if (isSpecial(other, type)) return false
  }
  return found
}
