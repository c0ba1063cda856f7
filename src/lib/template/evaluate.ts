import { getSlice, missingMember } from './access.ts'
import { operate, sign } from './arithmetic.ts'
import type {
  Arguments,
  ComparisonOperator,
  Expression,
  FilterStep,
  ForStatement,
  MacroStatement,
  Statement,
  Target,
  Template,
} from './ast.ts'
import { getAttribute, getSubscript } from './attributes.ts'
import { holds } from './compare.ts'
import { filterError, foreignError, limitError, quoted, TemplateError, typeError } from './error.ts'
import type { Runtime } from './filters/filter.ts'
import { filters } from './filters/index.ts'
import { globals } from './globals.ts'
import { iterate } from './iteration.ts'
import { plainValue } from './json.ts'
import { MAX_NESTING, type Budget } from './limits.ts'
import { isMapping, mappingEntries, ownValue } from './mapping.ts'
import { loopMember, type LoopState } from './loop.ts'
import { changingMethod, methodOf } from './methods.ts'
import { LoopScope } from './scope.ts'
import { tests } from './tests.ts'
import { textOf } from './text.ts'
import {
  adopt,
  Callable,
  Dict,
  float,
  isTrue,
  LazyNamespace,
  Members,
  orElse,
  Sequence,
  resolveLazy,
  typeNameOf,
  Undefined,
  type Call,
  type Value,
} from './values.ts'

/** Variables by name: own data properties of an object, or the entries of a map. */
export type Variables = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>

/**
 * A filter or function of svc. Gets and returns plain data, and throws to reject its input.
 *
 * A filter's value is the first of the positional arguments.
 */
export type HostFunction = (positional: readonly unknown[], named: Readonly<Record<string, unknown>>) => unknown

export interface EvaluationOptions {
  budget: Budget
  filters: Readonly<Record<string, HostFunction>>
  functions: Readonly<Record<string, HostFunction>>
  /** An inline `if` without `else` gives an undefined value, which cannot be printed. Default: it prints as nothing. */
  isStrict?: boolean
  /** A template that is one expression gives text, too. Default: it gives the value. */
  isText?: boolean
  /** Nothing follows the expression: a method that changes a value gives its result, and changes nothing. */
  isSingle?: boolean
}

/** Evaluates a template once. */
export function evaluateTemplate(template: Template, variables: Variables, options: EvaluationOptions): unknown {
  return bounded(() => new Evaluation(variables, options).run(template))
}

/** The value of one expression, which can be `Undefined`. */
export function evaluateOnly(expression: Expression, variables: Variables, options: EvaluationOptions): Value {
  return bounded(() => new Evaluation(variables, { ...options, isSingle: true }).evaluateOnly(expression))
}

function bounded<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof RangeError) throw limitError('the template nests calls or values too deeply')
    throw error
  }
}

interface Output {
  text: string
}

const noNames: ReadonlyMap<string, Value> = new Map()
const noCall: Call = { positional: [], named: noNames }

class Evaluation implements Runtime {
  readonly budget: Budget
  readonly #variables: Variables
  readonly #options: EvaluationOptions
  #depth = 0

  constructor(variables: Variables, options: EvaluationOptions) {
    this.budget = options.budget
    this.#variables = variables
    this.#options = options
  }

  run(template: Template): unknown {
    const scope = new LoopScope()
    if (template.single !== undefined && this.#options.isText !== true)
      return plainValue(this.#evaluate(template.single, scope), this.budget)
    const output: Output = { text: '' }
    this.#execute(template.body, scope, output)
    return output.text
  }

  evaluateOnly(expression: Expression): Value {
    return this.#evaluate(expression, new LoopScope())
  }

  filter(name: string, value: Value, call: Call): Value {
    this.budget.step()
    const own = ownFunction(this.#options.filters, name)
    if (own !== undefined) {
      if (value instanceof Undefined) value.raise()
      return this.#callHost(own, `the filter ${quoted(name)}`, [value, ...call.positional], call.named)
    }
    const run = filters.get(name)
    if (run === undefined)
      throw foreignError('FILTER', `No filter named ${quoted(name)}.`, undefined, 'TemplateAssertionError')
    return run(value, call, this)
  }

  test(name: string, value: Value, call: Call): boolean {
    this.budget.step()
    if (name === 'filter') return typeof value === 'string' && this.#hasFilter(value)
    if (name === 'test')
      return typeof value === 'string' && (tests.has(value) || value === 'filter' || value === 'test')
    const run = tests.get(name)
    if (run === undefined)
      throw foreignError('FILTER', `No test named ${quoted(name)}.`, undefined, 'TemplateAssertionError')
    return run(value, call, this)
  }

  #hasFilter(name: string): boolean {
    return filters.has(name) || ownFunction(this.#options.filters, name) !== undefined
  }

  #callHost(run: HostFunction, what: string, positional: readonly Value[], named: ReadonlyMap<string, Value>): Value {
    const plain = positional.map((value) => plainValue(value, this.budget))
    const options: Record<string, unknown> = Object.create(null)
    for (const [name, value] of named) options[name] = plainValue(value, this.budget)
    try {
      return adopt(run(plain, options))
    } catch (error) {
      if (error instanceof TemplateError) throw error
      throw filterError(`${what} failed: ${error instanceof Error ? error.message : 'unknown reason'}`)
    }
  }

  #lookUp(name: string, scope: LoopScope): Value {
    let value = scope.get(name)
    if (value === undefined) value = this.#variable(name)
    if (value === undefined) value = globals.get(name)
    if (value !== undefined) return value
    const run = ownFunction(this.#options.functions, name)
    if (run !== undefined) {
      return new Callable(name, (call) => this.#callHost(run, `${name}()`, call.positional, call.named))
    }
    return new Undefined(`${quoted(name)} is undefined`, false, true)
  }

  #variable(name: string): Value | undefined {
    if (!isMap(this.#variables)) return ownValue(this.#variables, name)
    const value = this.#variables.get(name)
    return value === undefined ? undefined : adopt(value)
  }

  #evaluate(node: Expression, scope: LoopScope): Value {
    return resolveLazy(this.#find(node, scope))
  }

  /** Does not replace a namespace by its value, because the next attribute can be one of its names. */
  #find(node: Expression, scope: LoopScope): Value {
    this.budget.step()
    switch (node.kind) {
      case 'literal':
        return node.value
      case 'float':
        return float(node.value)
      case 'name':
        return this.#lookUp(node.name, scope)
      case 'attribute':
        return this.#member(this.#find(node.object, scope), node.name)
      case 'item': {
        const object = this.#find(node.object, scope)
        const key = this.#evaluate(node.key, scope)
        if (typeof key !== 'string') return getSubscript(resolveLazy(object), key, this.budget)
        const value = this.#member(object, key, true)
        // A key that is computed is a value, and messages hold none.
        if (!(value instanceof Undefined) || value.lenient || node.key.kind === 'literal') return value
        return new Undefined(`'${typeNameOf(object)} object' has no element of that name`)
      }
      case 'slice': {
        const object = this.#evaluate(node.object, scope)
        const bounds = [node.start, node.stop, node.step].map((bound) => bound && this.#evaluate(bound, scope))
        return getSlice(object, bounds, this.budget)
      }
      case 'list':
        return node.items.map((item) => this.#evaluate(item, scope))
      case 'tuple':
        return new Sequence(node.items.map((item) => this.#evaluate(item, scope)))
      case 'dict':
        return Dict.from(
          node.entries.map(({ key, value }) => [this.#evaluate(key, scope), this.#evaluate(value, scope)] as const),
        )
      case 'call':
        return this.#call(node.callee, this.#arguments(node.call, scope), scope)
      case 'filter':
        return this.filter(node.name, this.#evaluate(node.value, scope), this.#arguments(node.call, scope))
      case 'test':
        return (
          this.test(node.name, this.#evaluate(node.value, scope), this.#arguments(node.call, scope)) !== node.negated
        )
      case 'negative':
      case 'positive':
        return sign(this.#evaluate(node.value, scope), node.kind === 'negative', this.budget)
      case 'not':
        return !isTrue(this.#evaluate(node.value, scope))
      case 'binary':
        return operate(node.operator, this.#evaluate(node.left, scope), this.#evaluate(node.right, scope), this.budget)
      case 'concat':
        return this.#concatenate(node.parts, scope)
      case 'and':
      case 'or':
        return this.#logic(node.parts, node.kind === 'or', scope)
      case 'compare':
        return this.#compare(node.first, node.rest, scope)
      case 'condition':
        if (isTrue(this.#evaluate(node.test, scope))) return this.#evaluate(node.value, scope)
        return node.otherwise === undefined
          ? new Undefined('the inline if evaluated to false and has no else', this.#options.isStrict !== true)
          : this.#evaluate(node.otherwise, scope)
    }
  }

  #member(object: Value, name: string, isItem = false): Value {
    if (object instanceof LazyNamespace) return orElse(object.get(name), missingMember(object, name))
    return isItem ? getSubscript(object, name, this.budget) : getAttribute(object, name)
  }

  #concatenate(parts: readonly Expression[], scope: LoopScope): string {
    const texts = parts.map((part) => textOf(this.#evaluate(part, scope), this.budget))
    this.budget.text(texts.reduce((length, text) => length + text.length, 0))
    return texts.join('')
  }

  /** The first operand that decides, else the last one. */
  #logic(parts: readonly Expression[], decisive: boolean, scope: LoopScope): Value {
    let value: Value = null
    for (const [index, part] of parts.entries()) {
      value = this.#evaluate(part, scope)
      if (index < parts.length - 1 && isTrue(value) === decisive) return value
    }
    return value
  }

  #compare(
    first: Expression,
    rest: readonly { operator: ComparisonOperator; value: Expression }[],
    scope: LoopScope,
  ): boolean {
    let left = this.#evaluate(first, scope)
    for (const { operator, value } of rest) {
      const right = this.#evaluate(value, scope)
      if (!holds(left, operator, right, this.budget)) return false
      left = right
    }
    return true
  }

  #arguments(call: Arguments, scope: LoopScope): Call {
    if (call.positional.length === 0 && call.named.length === 0 && !call.spread && !call.spreadNamed) return noCall
    const positional = call.positional.map((value) => this.#evaluate(value, scope))
    if (call.spread !== undefined) positional.push(...iterate(this.#evaluate(call.spread, scope), this.budget))
    if (call.named.length === 0 && call.spreadNamed === undefined) return { positional, named: noNames }
    const named = new Map<string, Value>()
    for (const { name, value } of call.named) named.set(name, this.#evaluate(value, scope))
    if (call.spreadNamed !== undefined) {
      const mapping = this.#evaluate(call.spreadNamed, scope)
      if (!isMapping(mapping)) throw typeError(`the value after ** must be a dictionary, not ${typeNameOf(mapping)}`)
      for (const [key, value] of mappingEntries(mapping, (count) => this.budget.step(count))) {
        if (typeof key !== 'string') throw typeError('keywords must be strings')
        if (named.has(key)) throw typeError(`the argument ${quoted(key)} is given twice`)
        named.set(key, value)
      }
    }
    return { positional, named }
  }

  #call(callee: Expression, call: Call, scope: LoopScope): Value {
    if (callee.kind === 'attribute') {
      const object = this.#evaluate(callee.object, scope)
      // A dictionary may hold a key such as `items`; what is called is the method.
      const method = isMapping(object) || typeof object === 'string' ? methodOf(object, callee.name) : undefined
      if (this.#options.isSingle === true) {
        const change = changingMethod(object, callee.name)
        if (change !== undefined) return change(object, call, this.budget)
      }
      if (method !== undefined) return method(object, call, this.budget)
      return this.#callValue(getAttribute(object, callee.name), call)
    }
    return this.#callValue(this.#evaluate(callee, scope), call)
  }

  #callValue(callee: Value, call: Call): Value {
    if (callee instanceof Undefined) callee.raise()
    if (callee instanceof Callable || callee instanceof Members) return callee.call(call, this.budget)
    throw typeError(`'${typeNameOf(callee)}' object is not callable`)
  }

  #execute(body: readonly Statement[], scope: LoopScope, output: Output): void {
    for (const statement of body) this.#statement(statement, scope, output)
  }

  #write(text: string, output: Output): void {
    this.budget.text(text.length)
    output.text += text
    if (output.text.length > this.budget.limits.maxTextLength) this.budget.text(output.text.length)
  }

  #capture(body: readonly Statement[], scope: LoopScope): string {
    const output: Output = { text: '' }
    this.#execute(body, scope, output)
    return output.text
  }

  #statement(statement: Statement, scope: LoopScope, output: Output): void {
    this.budget.step()
    switch (statement.kind) {
      case 'text':
        this.#write(statement.text, output)
        return
      case 'output':
        this.#write(textOf(this.#evaluate(statement.value, scope), this.budget), output)
        return
      case 'if': {
        const branch = statement.branches.find(({ test }) => isTrue(this.#evaluate(test, scope)))
        this.#execute(branch?.body ?? statement.otherwise ?? [], scope, output)
        return
      }
      case 'for':
        this.#loop(statement, this.#evaluate(statement.iterable, scope), scope, output, 0)
        return
      case 'set':
        this.#assign(statement.target, this.#find(statement.value, scope), scope)
        return
      case 'set-block': {
        const text = this.#capture(statement.body, new LoopScope(scope))
        this.#assign(statement.target, this.#applySteps(statement.filters, text, scope), scope)
        return
      }
      case 'with': {
        const inner = new LoopScope(scope)
        for (const { target, value } of statement.bindings) this.#assign(target, this.#find(value, scope), inner)
        this.#execute(statement.body, inner, output)
        return
      }
      case 'filter-block': {
        const text = this.#capture(statement.body, new LoopScope(scope))
        this.#write(textOf(this.#applySteps(statement.filters, text, scope), this.budget), output)
        return
      }
      case 'macro':
        scope.set(statement.name, this.#macro(statement, scope))
        return
      case 'call-block': {
        const { call } = statement
        if (call.kind !== 'call') throw typeError('{% call %} needs a call of a macro')
        const given = this.#arguments(call.call, scope)
        const named = new Map(given.named).set('caller', this.#macro(statement.caller, scope))
        const result = this.#call(call.callee, { positional: given.positional, named }, scope)
        this.#write(textOf(result, this.budget), output)
        return
      }
    }
  }

  #applySteps(steps: readonly FilterStep[], text: string, scope: LoopScope): Value {
    return steps.reduce<Value>((value, step) => this.filter(step.name, value, this.#arguments(step.call, scope)), text)
  }

  #assign(target: Target, value: Value, scope: LoopScope): void {
    switch (target.kind) {
      case 'name':
        scope.set(target.name, value)
        return
      case 'member': {
        const object = this.#lookUp(target.object, scope)
        if (object instanceof Undefined) object.raise()
        if (!(object instanceof Members)) throw typeError('attributes can be set on namespace() objects only')
        object.set(target.name, resolveLazy(value))
        return
      }
      case 'tuple': {
        const items = iterate(resolveLazy(value), this.budget)
        if (items.length !== target.items.length) {
          throw typeError(`cannot unpack ${items.length} values into ${target.items.length} names`)
        }
        for (const [index, item] of target.items.entries()) this.#assign(item, items[index] ?? null, scope)
      }
    }
  }

  #nested<T>(run: () => T): T {
    this.#depth += 1
    if (this.#depth > MAX_NESTING) throw limitError(`the template nests calls deeper than ${MAX_NESTING}`)
    const result = run()
    this.#depth -= 1
    return result
  }

  #loop(statement: ForStatement, iterable: Value, scope: LoopScope, output: Output, depth: number): void {
    let items = iterate(iterable, this.budget)
    const { test, target } = statement
    if (test !== undefined) {
      items = items.filter((item) => {
        const inner = new LoopScope(scope)
        this.#assign(target, item, inner)
        return isTrue(this.#evaluate(test, inner))
      })
    }
    if (items.length === 0) {
      this.#execute(statement.otherwise, new LoopScope(scope), output)
      return
    }
    const state: LoopState = { items, index: 0, depth, changed: undefined }
    const loop = this.#loopObject(state, statement, scope)
    for (const [index, item] of items.entries()) {
      this.budget.step()
      state.index = index
      const inner = new LoopScope(scope)
      inner.set('loop', loop)
      this.#assign(target, item, inner)
      this.#execute(statement.body, inner, output)
    }
  }

  #loopObject(state: LoopState, statement: ForStatement, scope: LoopScope): Members {
    const recurse = (call: Call): Value => {
      const [iterable = null] = call.positional
      const output: Output = { text: '' }
      this.#nested(() => this.#loop(statement, iterable, scope, output, state.depth + 1))
      return output.text
    }
    return new Members(
      'LoopContext',
      (name) => loopMember(state, name, this.budget),
      statement.recursive ? { run: recurse } : {},
    )
  }

  #macro(macro: MacroStatement, scope: LoopScope): Members {
    return new Members(
      'Macro',
      (name) => {
        if (name === 'name') return macro.name
        return name === 'arguments' ? new Sequence(macro.parameters.map((parameter) => parameter.name)) : undefined
      },
      { run: (call) => this.#nested(() => this.#runMacro(macro, call, new LoopScope(scope))) },
    )
  }

  #runMacro(macro: MacroStatement, call: Call, scope: LoopScope): string {
    const { name, parameters, takes } = macro
    const named = new Map(call.named)
    const extra = call.positional.slice(parameters.length)
    if (extra.length > 0 && !takes.varargs) {
      throw typeError(`macro ${quoted(name)} takes not more than ${parameters.length} argument(s)`)
    }
    for (const [index, parameter] of parameters.entries()) {
      const positional = call.positional[index]
      const byName = named.get(parameter.name)
      named.delete(parameter.name)
      if (positional !== undefined && byName !== undefined) {
        throw typeError(`macro ${quoted(name)} got the argument ${quoted(parameter.name)} twice`)
      }
      const given = positional === undefined ? byName : positional
      if (given !== undefined) scope.set(parameter.name, given)
      else if (parameter.fallback === undefined) {
        scope.set(parameter.name, new Undefined(`parameter ${quoted(parameter.name)} was not provided`))
      } else scope.set(parameter.name, this.#evaluate(parameter.fallback, scope))
    }
    if (takes.caller) {
      scope.set('caller', orElse(named.get('caller'), new Undefined('No caller defined')))
      named.delete('caller')
    }
    const [unknown] = named.keys()
    if (unknown !== undefined && !takes.kwargs) {
      throw typeError(`macro ${quoted(name)} takes no keyword argument ${quoted(unknown)}`)
    }
    if (takes.varargs) scope.set('varargs', new Sequence(extra))
    if (takes.kwargs) scope.set('kwargs', Dict.from(named))
    return this.#capture(macro.body, scope)
  }
}

function isMap(variables: Variables): variables is ReadonlyMap<string, unknown> {
  return variables instanceof Map
}

function ownFunction(functions: Readonly<Record<string, HostFunction>>, name: string): HostFunction | undefined {
  return Object.hasOwn(functions, name) ? functions[name] : undefined
}
