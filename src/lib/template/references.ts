import type { Arguments, Expression, FilterStep, MacroStatement, Statement, Target, Template } from './ast.ts'

/** What a template reads from outside. */
export interface References {
  /** names that are read and not always set by the template itself, in order of appearance */
  names: string[]
  /** the same reads with as much of a dotted path as is written out, such as `svckv.system.x` */
  paths: string[]
}

/** Free names and static paths of a template; `globals` are names that need no variable. */
export function collectReferences(template: Template, globals: ReadonlySet<string>): References {
  const collector = new Collector(globals)
  collector.statements(template.body, new Bound())
  return { names: [...collector.names], paths: [...collector.paths] }
}

/** Functions and filters that a template, or a single expression, calls by name, in order of appearance. */
export function collectCalls(parsed: Template | Expression): string[] {
  const collector = new Collector(new Set())
  if ('body' in parsed) collector.statements(parsed.body, new Bound())
  else collector.expression(parsed, new Bound())
  return [...collector.calls]
}

/** Which of the names that every macro has of its own the body of one reads; macros inside it have theirs. */
export function readsOfMacro(body: readonly Statement[]): ReadonlySet<string> {
  const collector = new Collector(new Set(), false)
  collector.statements(body, new Bound())
  return new Set(ownNames.filter((name) => collector.names.has(name)))
}

const ownNames = ['varargs', 'kwargs', 'caller']

/** Names set for certain: those of a block, and of the blocks around it. */
class Bound {
  readonly own = new Set<string>()
  readonly #outer: Bound | undefined

  constructor(outer?: Bound) {
    this.#outer = outer
  }

  has(name: string): boolean {
    return this.own.has(name) || this.#outer?.has(name) === true
  }

  add(name: string): void {
    this.own.add(name)
  }
}

class Collector {
  readonly names = new Set<string>()
  readonly paths = new Set<string>()
  readonly calls = new Set<string>()
  readonly #globals: ReadonlySet<string>
  readonly #entersMacros: boolean

  constructor(globals: ReadonlySet<string>, entersMacros = true) {
    this.#globals = globals
    this.#entersMacros = entersMacros
  }

  #read(name: string, bound: Bound, path: readonly string[] = []): void {
    if (bound.has(name) || this.#globals.has(name)) return
    this.names.add(name)
    this.paths.add([name, ...path].join('.'))
  }

  /** Walks the statements, adding to `bound` what they set for certain. */
  statements(body: readonly Statement[], bound: Bound): void {
    for (const statement of body) this.#statement(statement, bound)
  }

  #statement(statement: Statement, bound: Bound): void {
    switch (statement.kind) {
      case 'text':
        return
      case 'output':
        this.expression(statement.value, bound)
        return
      case 'if': {
        const ways: Bound[] = []
        for (const branch of statement.branches) {
          this.expression(branch.test, bound)
          const way = new Bound(bound)
          this.statements(branch.body, way)
          ways.push(way)
        }
        const otherwise = new Bound(bound)
        this.statements(statement.otherwise ?? [], otherwise)
        for (const name of otherwise.own) {
          if (!bound.has(name) && ways.every((way) => way.own.has(name))) bound.add(name)
        }
        return
      }
      case 'for': {
        this.expression(statement.iterable, bound)
        const inner = new Bound(bound)
        this.#bind(statement.target, inner)
        if (statement.test !== undefined) this.expression(statement.test, inner)
        inner.add('loop')
        this.statements(statement.body, inner)
        this.statements(statement.otherwise, new Bound(bound))
        return
      }
      case 'set':
        this.expression(statement.value, bound)
        this.#bind(statement.target, bound)
        return
      case 'set-block':
        this.statements(statement.body, new Bound(bound))
        this.#steps(statement.filters, bound)
        this.#bind(statement.target, bound)
        return
      case 'with': {
        const inner = new Bound(bound)
        for (const binding of statement.bindings) {
          this.expression(binding.value, bound)
          this.#bind(binding.target, inner)
        }
        this.statements(statement.body, inner)
        return
      }
      case 'filter-block':
        this.#steps(statement.filters, bound)
        this.statements(statement.body, new Bound(bound))
        return
      case 'macro':
        bound.add(statement.name)
        this.#macro(statement, bound)
        return
      case 'call-block':
        this.expression(statement.call, bound)
        this.#macro(statement.caller, bound)
        return
    }
  }

  #macro(macro: MacroStatement, bound: Bound): void {
    if (!this.#entersMacros) return
    const inner = new Bound(bound)
    for (const name of ownNames) inner.add(name)
    for (const parameter of macro.parameters) {
      if (parameter.fallback !== undefined) this.expression(parameter.fallback, inner)
      inner.add(parameter.name)
    }
    this.statements(macro.body, inner)
  }

  #bind(target: Target, bound: Bound): void {
    if (target.kind === 'name') bound.add(target.name)
    else if (target.kind === 'member') this.#read(target.object, bound)
    else for (const item of target.items) this.#bind(item, bound)
  }

  #steps(steps: readonly FilterStep[], bound: Bound): void {
    for (const step of steps) {
      this.calls.add(step.name)
      this.#arguments(step.call, bound)
    }
  }

  #arguments(call: Arguments, bound: Bound): void {
    for (const value of call.positional) this.expression(value, bound)
    for (const argument of call.named) this.expression(argument.value, bound)
    if (call.spread !== undefined) this.expression(call.spread, bound)
    if (call.spreadNamed !== undefined) this.expression(call.spreadNamed, bound)
  }

  /** Reads a chain of attributes and constant keys as one path; false when the expression is no such chain. */
  #path(expression: Expression, bound: Bound): boolean {
    const path: string[] = []
    let at = expression
    for (;;) {
      if (at.kind === 'name') {
        this.#read(at.name, bound, path.reverse())
        return true
      }
      if (at.kind === 'attribute') {
        path.push(at.name)
      } else if (at.kind === 'item' && at.key.kind === 'literal' && typeof at.key.value === 'string') {
        path.push(at.key.value)
      } else {
        return false
      }
      at = at.object
    }
  }

  expression(expression: Expression, bound: Bound): void {
    switch (expression.kind) {
      case 'literal':
      case 'float':
        return
      case 'name':
        this.#read(expression.name, bound)
        return
      case 'attribute':
        if (!this.#path(expression, bound)) this.expression(expression.object, bound)
        return
      case 'item':
        if (this.#path(expression, bound)) return
        this.expression(expression.object, bound)
        this.expression(expression.key, bound)
        return
      case 'slice':
        this.expression(expression.object, bound)
        for (const part of [expression.start, expression.stop, expression.step]) {
          if (part !== undefined) this.expression(part, bound)
        }
        return
      case 'list':
      case 'tuple':
        for (const item of expression.items) this.expression(item, bound)
        return
      case 'dict':
        for (const entry of expression.entries) {
          this.expression(entry.key, bound)
          this.expression(entry.value, bound)
        }
        return
      case 'call': {
        // The last name of a called path is a method, not data.
        const { callee } = expression
        if (callee.kind === 'name' && !bound.has(callee.name)) this.calls.add(callee.name)
        this.expression(callee.kind === 'attribute' ? callee.object : callee, bound)
        this.#arguments(expression.call, bound)
        return
      }
      case 'filter':
      case 'test':
        this.expression(expression.value, bound)
        if (expression.kind === 'filter') this.calls.add(expression.name)
        this.#arguments(expression.call, bound)
        return
      case 'negative':
      case 'positive':
      case 'not':
        this.expression(expression.value, bound)
        return
      case 'binary':
        this.expression(expression.left, bound)
        this.expression(expression.right, bound)
        return
      case 'concat':
      case 'and':
      case 'or':
        for (const part of expression.parts) this.expression(part, bound)
        return
      case 'compare':
        this.expression(expression.first, bound)
        for (const operand of expression.rest) this.expression(operand.value, bound)
        return
      case 'condition':
        this.expression(expression.test, bound)
        this.expression(expression.value, bound)
        if (expression.otherwise !== undefined) this.expression(expression.otherwise, bound)
        return
    }
  }
}
