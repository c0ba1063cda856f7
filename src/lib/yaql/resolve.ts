/** Which overload of a function a call means. */
import type { Argument, Expression, RuleNode } from './ast.ts'
import type { Overload, Parameter } from './signature.ts'
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
  /** For each argument: how its parameter takes it. */
  readonly forms: readonly ParameterType<unknown>['form'][]
}

/** What can be said about a call before its arguments are evaluated. */
export class CallPlan {
  readonly layers: Layers
  readonly hasReceiver: boolean
  /** Positional arguments, then those by name. The receiver has no node. */
  readonly nodes: readonly (Expression | RuleNode | undefined)[]
  readonly candidates: readonly (readonly Candidate[])[]

  constructor(
    layers: Layers,
    hasReceiver: boolean,
    nodes: readonly (Expression | RuleNode | undefined)[],
    candidates: readonly (readonly Candidate[])[],
  ) {
    this.layers = layers
    this.hasReceiver = hasReceiver
    this.nodes = nodes
    this.candidates = candidates
  }
}

/** A rule whose key cannot be the name of a parameter; with a message: the name of an argument that cannot be given by name. */
export class NotAName extends Error {}

/** Drops the overloads that do not fit the number, the names and the constants among the arguments. */
export function planCall(layers: Layers, args: readonly Argument[], hasReceiver: boolean): CallPlan {
  const takesRules = layers.some((layer) => layer.some((overload) => overload.takesRules))
  const nodes: (Expression | RuleNode | undefined)[] = hasReceiver ? [undefined] : []
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
  const given: Given = { nodes, empty, positional, named }
  const candidates = layers
    .map((layer) => layer.flatMap((overload) => fit(overload, given) ?? []))
    .filter((layer) => layer.length > 0)
  return new CallPlan(layers, hasReceiver, nodes, candidates)
}

interface Given {
  nodes: readonly (Expression | RuleNode | undefined)[]
  empty: ReadonlySet<number>
  positional: number
  named: ReadonlyMap<string, number>
}

function fit(overload: Overload<unknown>, { nodes, empty, positional, named }: Given): Candidate | undefined {
  const sources: Source[] = []
  const forms: ParameterType<unknown>['form'][] = nodes.map(() => 'value')
  const left = new Map(named)
  let next = 0
  const take = (index: number, type: ParameterType<unknown>): boolean => {
    forms[index] = type.form
    return mayAccept(type, nodes[index])
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
    } else if (!take(index, type)) return undefined
    sources.push(index)
  }
  return next < positional || left.size > 0 ? undefined : { overload, sources, forms }
}

/** Whether the type may accept what the expression gives; certain only for constants. */
function mayAccept(type: ParameterType<unknown>, node: Expression | RuleNode | undefined): boolean {
  if (node === undefined) return true
  if (type.form === 'rule' || node.kind === 'rule') return type.form === 'rule' && node.kind === 'rule'
  return type.form === 'lambda' || node.kind !== 'constant' || type.accepts(adopt(node.value))
}

/** The parameter that takes an argument. */
function parameterOf({ overload, sources }: Candidate, index: number): Parameter<unknown> | undefined {
  const at = sources.findIndex(
    (source) =>
      source === index ||
      (Array.isArray(source) && source.includes(index)) ||
      (source instanceof Map && [...source.values()].includes(index)),
  )
  return overload.parameters[at]
}

/** Whether every evaluated argument has the type that its parameter wants. */
export function accepts({ overload, sources, forms }: Candidate, values: readonly Value[]): boolean {
  const { parameters } = overload
  for (let at = 0; at < parameters.length; at += 1) {
    const source = sources[at]
    const type = parameters[at]?.type
    if (source === undefined || type === undefined) continue
    if (typeof source === 'number') {
      if (forms[source] === 'value' && !type.accepts(values[source] ?? null)) return false
      continue
    }
    for (const index of source.values()) {
      if (forms[index] === 'value' && !type.accepts(values[index] ?? null)) return false
    }
  }
  return true
}

/** Of two overloads that accept the arguments: whether the first one is made for them rather than the second. */
export function isSpecialization(first: Candidate, second: Candidate, count: number): boolean {
  let found = false
  for (let index = 0; index < count; index += 1) {
    const [a, b] = [parameterOf(first, index)?.type, parameterOf(second, index)?.type]
    if (a === undefined || b === undefined) continue
    if (isSpecial(a, b)) found = true
    else if (isSpecial(b, a)) return false
  }
  return found
}
