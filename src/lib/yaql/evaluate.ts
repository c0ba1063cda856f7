import type { Budget } from '../template/index.ts'
import type { Argument, CallNode, ConstantNode, Expression, RuleNode } from './ast.ts'
import { equals, hashOf, isTrue, makeDict, mappingGet, membersOf } from './equality.ts'
import { typeError, YaqlError } from './error.ts'
import {
  accepts,
  CallPlan,
  isSpecialization,
  NotAName,
  planCall,
  takeAlike,
  type Candidate,
  type Layers,
} from './resolve.ts'
import type { Runtime } from './runtime.ts'
import { Lambda, Scope, type DefinedFunctions, type Rule } from './scope.ts'
import { fn, namedRest, rest, type FunctionTable, type Overload } from './signature.ts'
import { keyError, shownReceiver, printed } from './text.ts'
import { Any } from './types.ts'
import {
  adopt,
  Dict,
  DictView,
  isIterable,
  isSetLike,
  isMapping,
  isTuple,
  Iteration,
  Repeatable,
  SetValue,
  typeNameOf,
  type Hash,
  type Value,
} from './values.ts'

/** Deepest nesting of evaluations: functions within functions, and sequences that read each other. */
const MAX_DEPTH = 400

/** What is called, and the values of its first arguments. */
interface Called {
  readonly name: string
  readonly position: number | undefined
  readonly given: readonly Value[]
  /** The first value is the receiver. */
  readonly isMethod: boolean
}

type Kind = 'function' | 'method'

const isKind = (overload: Overload<unknown>, kind: Kind): boolean =>
  kind === 'function' ? overload.isFunction : overload.isMethod

/** Layers of a library and the table of a host, each looked up once per name. */
export class Functions {
  readonly #tables: readonly FunctionTable<unknown>[]
  readonly #known: Record<Kind, Map<string, Layers>> = { function: new Map(), method: new Map() }

  constructor(tables: readonly FunctionTable<unknown>[]) {
    this.#tables = tables
  }

  layers(name: string, kind: Kind): Layers {
    const known = this.#known[kind].get(name)
    if (known !== undefined) return known
    const layers = this.#tables
      .map((table) => table.get(name).filter((overload) => isKind(overload, kind)))
      .filter((layer) => layer.length > 0)
    // Only names that exist: an expression can invent others without end.
    if (layers.length > 0) this.#known[kind].set(name, layers)
    return layers
  }
}

export class Evaluator implements Runtime<unknown> {
  readonly budget: Budget
  readonly host: unknown
  readonly #functions: Functions
  readonly #root: Scope
  #depth = 0

  constructor(functions: Functions, budget: Budget, host: unknown) {
    this.#functions = functions
    this.budget = budget
    this.host = host
    this.#root = new Scope(undefined)
  }

  /** The value of the whole expression, with every sequence read to its end. */
  run(expression: Expression, root: Value): Value {
    const scope = root === null ? this.#root : new Scope(this.#root, [root])
    return this.finish(this.evaluate(expression, scope))
  }

  evaluate(node: Expression, scope: Scope): Value {
    this.budget.step()
    switch (node.kind) {
      case 'constant':
        return adopt(node.value)
      case 'variable':
        return scope.get(node.name, node.index)
      case 'call':
    }
    this.#enter()
    const value = this.#evaluateCall(node, scope)
    this.#depth -= 1
    return value
  }

  /** An error ends the whole evaluation, so only success has to count down again. */
  #enter(): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw new YaqlError('RecursionError', 'maximum recursion depth exceeded')
  }

  #evaluateCall(node: CallNode, scope: Scope): Value {
    const [left, right] = node.args
    switch (node.name) {
      case '#operator_.':
      case '#operator_?.': {
        if (!isExpression(left) || !isExpression(right)) throw noMatch('#operator_.')
        // No receiver has it.
        if (node.name === '#operator_.' && !isMember(right)) throw noMatch('#operator_.')
        const receiver = this.evaluate(left, scope)
        return receiver === null && node.name === '#operator_?.' ? null : this.#member(receiver, right, scope)
      }
      case '#operator_and':
      case '#operator_or': {
        if (!isExpression(left) || !isExpression(right)) throw noMatch(node.name)
        const value = this.evaluate(left, scope)
        return this.isTrue(value) === (node.name === '#operator_or') ? value : this.evaluate(right, scope)
      }
      case '#operator_->': {
        const inner = isExpression(left) ? this.evaluate(left, scope) : null
        if (!(inner instanceof Scope) || !isExpression(right)) throw noMatch(node.name)
        return this.evaluate(right, inner)
      }
      case '#list': {
        this.budget.items(node.args.length)
        return node.args.map((argument) => {
          if (!isExpression(argument)) throw noMatch('#list')
          return this.evaluate(argument, scope)
        })
      }
      case '#map': {
        const entries = node.args.map((argument) => {
          if (argument.kind !== 'rule') throw noMatch('#map')
          return [this.evaluate(argument.key, scope), this.evaluate(argument.value, scope)] as const
        })
        return makeDict(entries, this.budget)
      }
      default:
        return this.#call(node, [], scope)
    }
  }

  /** `receiver.right`: a method, a key of a dictionary, the key of each item, or a property. */
  #member(receiver: Value, right: Expression, scope: Scope): Value {
    if (!isMember(right)) throw noMatch('#operator_.')
    return right.kind === 'call' ? this.#call(right, [receiver], scope) : this.#keyword(receiver, right.value)
  }

  #keyword(receiver: Value, name: string): Value {
    if (isMapping(receiver)) {
      const value = mappingGet(receiver, name, this.budget)
      if (value === undefined) throw keyError(name, this.budget)
      return value
    }
    if (isIterable(receiver)) return this.lazy(this.#eachKeyword(receiver, name))
    return this.call(`#property#${name}`, [receiver])
  }

  *#eachKeyword(receiver: Value, name: string): Generator<Value> {
    for (const item of this.each(receiver)) yield this.#keyword(item, name)
  }

  #layers(name: string, kind: Kind, scope: Scope): Layers {
    const layers = this.#functions.layers(name, kind)
    if (kind === 'method' || scope.functions === undefined) return layers
    for (let each: DefinedFunctions | undefined = scope.functions; each !== undefined; each = each.outer) {
      // It takes whatever it is given, so it hides all others.
      if (each.name === name) return definedLayers(each)
    }
    return layers
  }

  /** A call that the expression writes; with a receiver, of a method. */
  #call(node: CallNode, receivers: readonly [] | readonly [Value], scope: Scope): Value {
    const { name, position } = node
    const called: Called = { name, position, given: receivers, isMethod: receivers.length > 0 }
    const layers = this.#layersOf(called, scope)
    const known = node.plan
    const isKnown = known instanceof CallPlan && known.layers === layers && known.given === receivers.length
    const plan = isKnown ? known : planFor(called, layers, node.args)
    node.plan = plan
    return this.#invoke(called, plan, scope)
  }

  call(name: string, args: readonly Value[], named = noNames, scope = this.#root): Value {
    return this.#callGiven({ name, position: undefined, given: args, isMethod: false }, named, scope)
  }

  callMethod(name: string, receiver: Value, args: readonly Value[], named = noNames, scope = this.#root): Value {
    return this.#callGiven({ name, position: undefined, given: [receiver, ...args], isMethod: true }, named, scope)
  }

  #callGiven(called: Called, named: ReadonlyMap<string, Value>, scope: Scope): Value {
    this.#enter()
    const layers = this.#layersOf(called, scope)
    const plan = named.size === 0 ? plainPlan(called, layers) : planFor(called, layers, rulesOf(named))
    const value = this.#invoke(called, plan, scope)
    this.#depth -= 1
    return value
  }

  #layersOf({ name, position, given, isMethod }: Called, scope: Scope): Layers {
    const layers = this.#layers(name, isMethod ? 'method' : 'function', scope)
    if (layers.length > 0) return layers
    if (isMethod) throw unknownMethod(name, given[0] ?? null, this.budget)
    throw new YaqlError('NoFunctionRegisteredException', `Unknown function "${name}"`, position)
  }

  #invoke(called: Called, plan: CallPlan, scope: Scope): Value {
    const { given } = called
    const { nodes } = plan
    const candidates =
      given.length === 0
        ? plan.candidates
        : plan.candidates
            .map((layer) => layer.filter((candidate) => accepts(candidate, given, given.length)))
            .filter((layer) => layer.length > 0)
    const first = candidates[0]?.[0]
    if (first === undefined) throw this.#noMatch(called)
    if (candidates.some((layer) => layer.some((other) => other !== first && !takeAlike(first, other)))) {
      throw this.#ambiguous(called)
    }
    const values: (Value | Lambda | Rule)[] = []
    for (let index = 0; index < nodes.length; index += 1) {
      values.push(this.#argument(nodes[index], given[index] ?? null, first.types[index]?.form === 'lambda', scope))
    }
    const winner = this.#winner(candidates, values as Value[], called)
    return winner.overload.run(argumentsOf(winner, values), this, scope)
  }

  #argument(
    node: Expression | RuleNode | undefined,
    given: Value,
    isLazy: boolean,
    scope: Scope,
  ): Value | Lambda | Rule {
    if (node === undefined) return isLazy ? this.constant(given) : given
    if (node.kind !== 'rule') return isLazy ? Lambda.of(node, scope, this) : this.evaluate(node, scope)
    return { key: Lambda.of(node.key, scope, this), value: Lambda.of(node.value, scope, this) }
  }

  #winner(candidates: readonly (readonly Candidate[])[], values: readonly Value[], called: Called): Candidate {
    for (const layer of candidates) {
      let winner: Candidate | undefined
      for (const candidate of layer) {
        if (!accepts(candidate, values, values.length)) continue
        if (winner === undefined) winner = candidate
        else if (!isSpecialization(winner, candidate)) {
          if (!isSpecialization(candidate, winner)) throw this.#ambiguous(called)
          winner = candidate
        }
      }
      if (winner !== undefined) return winner
    }
    throw this.#noMatch(called)
  }

  #noMatch({ name, position, given, isMethod }: Called): YaqlError {
    if (!isMethod) return noMatch(name, position)
    const shown = shownReceiver(given[0] ?? null, this.budget)
    const detail = `No method "${name}" for receiver ${shown} matches supplied arguments`
    return new YaqlError('NoMatchingMethodException', detail, position)
  }

  #ambiguous({ name, position, given, isMethod }: Called): YaqlError {
    if (!isMethod) return new YaqlError('AmbiguousFunctionException', `Ambiguous function "${name}"`, position)
    const shown = shownReceiver(given[0] ?? null, this.budget)
    return new YaqlError('AmbiguousMethodException', `Ambiguous method "${name}" for receiver ${shown}`, position)
  }

  *each(collection: Value): Generator<Value> {
    if (isTuple(collection)) {
      for (let at = 0; at < collection.length; at += 1) {
        this.budget.step()
        yield adopt(collection[at])
      }
      return
    }
    this.#enter()
    const source = this.#iterator(collection)
    this.#depth -= 1
    for (;;) {
      this.budget.step()
      this.#enter()
      const { done, value } = source.next()
      this.#depth -= 1
      if (done === true) return
      yield value
    }
  }

  #iterator(collection: Value): Iterator<Value> {
    if (collection instanceof Iteration) return collection.source
    if (collection instanceof Repeatable) return collection.start()
    if (collection instanceof SetValue) return collection.items.values()
    if (collection instanceof DictView) return membersOf(collection)
    throw typeError(`'${typeNameOf(collection)}' object is not iterable`)
  }

  list(collection: Value): Value[] {
    if (isTuple(collection)) {
      this.budget.items(collection.length)
      return Array.from(collection, adopt)
    }
    const items: Value[] = []
    for (const item of this.each(collection)) {
      items.push(item)
      if (items.length > this.budget.limits.maxItems) this.budget.items(items.length)
    }
    return items
  }

  lazy(items: Iterator<Value>): Iteration {
    return new Iteration(items)
  }

  equals(left: Value, right: Value): boolean {
    return equals(left, right, this.budget)
  }

  isTrue(value: Value): boolean {
    return isTrue(value, this.budget)
  }

  attempt(run: () => Value): Value | YaqlError {
    const depth = this.#depth
    try {
      return run()
    } catch (error) {
      if (!(error instanceof YaqlError) || error.isLimit) throw error
      this.#depth = depth
      return error
    }
  }

  text(value: Value): string {
    return printed(value, 'inner', this.budget)
  }

  constant(value: Value): Lambda {
    return Lambda.constant(value, this)
  }

  /** What the outside sees: sequences become lists, which are no keys. */
  finish(value: Value, depth = 0): Value {
    if (typeof value !== 'object' || value === null) return value
    this.budget.visit()
    this.budget.depth(depth)
    if (isMapping(value)) {
      if (!(value instanceof Dict)) return value
      const dict = new Dict()
      for (const [key, item] of value.entries()) {
        const finished = this.finish(key, depth + 1)
        dict.setHashed(this.#finishedHash(key), finished, this.finish(item, depth + 1))
      }
      return dict
    }
    if (value instanceof SetValue || (value instanceof DictView && value.typeName !== 'ValuesView')) {
      const items = new Map<Hash, Value>()
      for (const item of this.each(value)) {
        const finished = this.finish(item, depth + 1)
        items.set(this.#finishedHash(item), finished)
      }
      return new SetValue(items)
    }
    if (isIterable(value)) {
      const items: Value[] = []
      // An item is finished before the next one is asked for: both may read one sequence.
      for (const item of this.each(value)) {
        items.push(this.finish(item, depth + 1))
        if (items.length > this.budget.limits.maxItems) this.budget.items(items.length)
      }
      return items
    }
    if (value instanceof Scope) throw typeError('the expression gives a context, which is no value; use it with ->')
    return value
  }

  #finishedHash(key: Value): Hash {
    if (isSetLike(key)) throw typeError("unhashable type: 'set'")
    if (isIterable(key)) throw typeError("unhashable type: 'list'")
    if (isMapping(key)) throw typeError("unhashable type: 'dict'")
    return hashOf(key, this.budget)
  }
}

const definitions = new WeakMap<DefinedFunctions, Layers>()

/** The function of a `def(…)`. */
function definedLayers(definition: DefinedFunctions): Layers {
  let layers = definitions.get(definition)
  if (layers === undefined) {
    const { name, call } = definition
    const overload = fn(name, [rest('args', Any), namedRest('kwargs', Any)], ([args, named]) => call(args, named))
    layers = [[overload as Overload<unknown>]]
    definitions.set(definition, layers)
  }
  return layers
}

function isExpression(argument: Argument | undefined): argument is Expression {
  return argument !== undefined && argument.kind !== 'rule' && argument.kind !== 'empty'
}

const noNames: ReadonlyMap<string, Value> = new Map()

/** Values by name as the arguments of a call. */
function rulesOf(named: ReadonlyMap<string, Value>): Argument[] {
  const constant = (value: Value, isKeyword: boolean) =>
    ({ kind: 'constant', value, isKeyword, position: 0, height: 1 }) as const
  return Array.from(named, ([name, value]) => ({
    kind: 'rule',
    isNamed: true,
    key: constant(name, true),
    value: constant(value, false),
  }))
}

function planFor({ given, position }: Called, layers: Layers, args: readonly Argument[]): CallPlan {
  try {
    return planCall(layers, args, given.length)
  } catch (error) {
    if (!(error instanceof NotAName)) throw error
    if (error.message !== '') throw new YaqlError('ArgumentException', `Invalid argument ${error.message}`, position)
    throw new YaqlError('MappingTranslationException', 'Cannot convert mapping to keyword argument', position)
  }
}

/** Most arguments of a call by the library whose plan is kept. */
const MAX_KEPT_ARGUMENTS = 4
const plainPlans = new WeakMap<Layers, CallPlan[]>()

/** The plan of a call whose arguments are all given as values. */
function plainPlan(called: Called, layers: Layers): CallPlan {
  const count = called.given.length
  if (count > MAX_KEPT_ARGUMENTS) return planFor(called, layers, [])
  let plans = plainPlans.get(layers)
  if (plans === undefined) plainPlans.set(layers, (plans = []))
  return (plans[count] ??= planFor(called, layers, []))
}

function argumentsOf({ overload, sources }: Candidate, values: readonly (Value | Lambda | Rule)[]): unknown[] {
  return overload.parameters.map(({ type, fallback }, at) => {
    const source = sources[at]
    const convert = (index: number): unknown => type.convert(values[index] as Value)
    if (source === undefined) return fallback?.value
    if (typeof source === 'number') return convert(source)
    if (isTuple(source)) return source.map((index) => convert(Number(index)))
    return new Map(Array.from(source as ReadonlyMap<string, number>, ([name, index]) => [name, convert(index)]))
  })
}

function noMatch(name: string, position?: number): YaqlError {
  return new YaqlError('NoMatchingFunctionException', `No function "${name}" matches supplied arguments`, position)
}

function unknownMethod(name: string, receiver: Value, budget: Budget): YaqlError {
  const detail = `Unknown method "${name}" for receiver ${shownReceiver(receiver, budget)}`
  return new YaqlError('NoMethodRegisteredException', detail)
}

type Member = CallNode | (ConstantNode & { readonly value: string })

/** Whether it can stand behind a point: a call, or a name. */
function isMember(right: Expression): right is Member {
  if (right.isGrouped === true) return false
  if (right.kind === 'call') return !right.name.startsWith('#')
  return right.kind === 'constant' && right.isKeyword && typeof right.value === 'string'
}
