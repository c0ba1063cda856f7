/** One evaluation of compiled criteria. */
import { isAppError } from '../../../core/errors.ts'
import { isObject, MASK, represent } from '../../../lib/schema/index.ts'
import { createRenderer, reasonOfTemplate, type Renderer } from '../../../core/template-values.ts'
import {
  TemplateError,
  type TemplateScope,
  getMember,
  filterError,
  LazyNamespace,
  typeError,
  Undefined,
  Budget,
  defaultLimits,
  adopt,
  isList,
  typeNameOf,
  type Value,
} from '../../../lib/template/index.ts'
import { theirName } from '../../../core/compat/index.ts'
import { searchConditions, type Operator, type OperatorTest } from './operators.ts'
import { isKeptPath, type Roots } from './path.ts'
import type { Withheld } from '../../triggers/index.ts'
import { compile, type Compiled, type Criterion, type SearchOperator, type TestOperator } from './compile.ts'
import { shown } from '../../../lib/text/index.ts'

/** Of `svckv`. */
const STACKSTORM_NAME = theirName('template', 'svckv') ?? ''

export interface CriteriaContext {
  /** Payload of the trigger instance: `trigger` in keys and patterns. Templates in it stay text. */
  payload: unknown
  /** Set: the payload is reduced. No criterion on what it lacks holds: withheld is not absent. */
  withheld?: Withheld
  /** Scope of patterns besides the payload. `svckv.system` is also available as `system`. */
  scope: TemplateScope
  /** Microseconds since the epoch. */
  now: number
}

/** A criterion with its pattern and value. In a result: the first that does not hold. */
export interface FailedCriterion {
  key: string
  type: string
  /** Rendered if possible. Masked if it decrypts a value. */
  pattern: unknown
  condition?: string
  /** The compared value, not a copy. */
  value: unknown
}

export type CriteriaResult =
  | { matches: true }
  | {
      matches: false
      failed: FailedCriterion
      /** Why the comparison failed, which makes a failed rule enforcement. Contains no values except dates. */
      reason?: string
      /** Why the rule does not match, if criterion and value do not show it. */
      note?: string
    }

/** Limits of one evaluation without its templates. The slowest known case takes less than 0.5 s. */
export const limits = { ...defaultLimits, maxWork: 16 * 1024 * 1024, maxMilliseconds: 500 }
const RENDERING_STEPS = 100
/** Steps that a failed comparison within `search` costs: it does not end the evaluation and takes longer. */
const FAILURE_STEPS = 40
export const SUBJECT = 'the comparison'

export type CriteriaMismatch = Extract<CriteriaResult, { matches: false }>
export type Stage = 'pattern' | 'value' | 'comparison'

/** Inputs of a comparison; pattern and value are set once the criterion has read them. */
export interface Compared {
  /** Rendered. */
  pattern: Value | undefined
  value: Value
}

/** State that the criteria share during one evaluation. */
export class CriteriaRun {
  readonly #budget = new Budget(limits, SUBJECT)
  readonly #context: CriteriaContext
  readonly #roots: Roots
  readonly #templates: Compiled['templates']
  #variables: Map<string, unknown> | undefined
  #renderer: Renderer | undefined
  readonly #rendered = new Map<Criterion, Value>()
  /** What patterns have read and the datastore does not have, in words. */
  readonly #gaps: string[] = []

  constructor(templates: Compiled['templates'], context: CriteriaContext) {
    this.#templates = templates
    this.#context = context
    this.#roots = { data: { trigger: context.payload }, system: () => this.#system() }
  }

  /** Why a criterion does not hold; undefined: it holds. @param compared receives pattern and value */
  check(criterion: Criterion, roots: Roots = this.#roots, compared?: Compared): CriteriaMismatch | undefined {
    let pattern: Value | undefined
    let value: Value = null
    let stage: Stage = 'value'
    let found: CriteriaMismatch | undefined
    if (roots === this.#roots && this.#isWithheld(criterion)) {
      const note = `The rule cannot see the value. ${this.#context.withheld?.reason ?? ''}`
      return { matches: false, failed: describe(criterion, pattern, value), note }
    }
    try {
      value = criterion.path.read(roots, this.#budget)
      stage = 'pattern'
      pattern = this.#patternOf(criterion, roots)
      stage = 'comparison'
      if (compared !== undefined) Object.assign(compared, { pattern, value } satisfies Compared)
      const { operator } = criterion
      if (operator.kind === 'search') {
        if (pattern !== null) {
          const outcome = this.#search(criterion, itemsOf(operator, pattern), value)
          if (outcome === true) return undefined
          if (outcome !== false) found = outcome
        }
      } else if (isEmptied(criterion, operator.operator, pattern)) {
        return { matches: false, failed: describe(criterion, pattern, value), note: EMPTIED }
      } else if (
        (pattern !== null || operator.operator.acceptsNull === true) &&
        this.#testOf(criterion, operator, pattern)(value, { budget: this.#budget, now: this.#context.now })
      ) {
        return undefined
      }
    } catch (error) {
      const isRunOver = isOver(error) && roots !== this.#roots
      if (isRunOver || !(error instanceof TemplateError || isAppError(error))) throw error
      const failed = describe(criterion, pattern, value)
      const gap = stage === 'pattern' ? this.#gaps.find((each) => error.message.includes(each)) : undefined
      if (gap !== undefined) return { matches: false, failed, note: `The pattern matches nothing: ${gap}.` }
      return { matches: false, failed, reason: reasonOf(criterion, stage, error) }
    }
    return {
      matches: false,
      failed: describe(criterion, pattern, value),
      ...(found?.reason === undefined ? {} : { reason: found.reason }),
      ...(found?.note === undefined ? {} : { note: found.note }),
    }
  }

  #isWithheld({ path }: Criterion): boolean {
    const { withheld } = this.#context
    return withheld !== undefined && path.root !== 'system' && !isKeptPath(path, withheld)
  }

  #patternOf(criterion: Criterion, roots: Roots): Value {
    const { pattern } = criterion
    if (pattern.kind === 'fixed') return pattern.value
    if (pattern.kind === 'broken') throw pattern.error
    const known = this.#rendered.get(criterion)
    if (known !== undefined) return known

    this.#budget.step(RENDERING_STEPS)
    this.#renderer ??= createRenderer(this.#templates, {
      filters: this.#context.scope.filters,
      fail: (_, why) => filterError(why),
    })
    this.#variables ??= this.#makeVariables()
    const readsItem = 'item' in roots.data && pattern.names.has('item')
    const variables = readsItem ? new Map(this.#variables).set('item', roots.data['item']) : this.#variables
    const rendered = adopt(this.#renderer.render(criterion.key, criterion.written, variables))
    if (!readsItem) this.#rendered.set(criterion, rendered)
    return rendered
  }

  #makeVariables(): Map<string, unknown> {
    const variables = new Map(Object.entries(this.#context.scope.variables))
    variables.set('trigger', this.#context.payload)
    const system = this.#system()
    if (system !== undefined) variables.set('system', withGaps(system, 'system', this.#gaps))
    for (const name of ['svckv', STACKSTORM_NAME]) {
      const items = this.#context.scope.variables[name]
      if (items !== undefined) variables.set(name, withGaps(items, name, this.#gaps))
    }
    return variables
  }

  /** The system scope of the datastore. */
  #system(): unknown {
    const { system, svckv } = this.#context.scope.variables
    if (system !== undefined || svckv === undefined) return system
    return getMember(adopt(svckv), 'system')
  }

  #testOf(criterion: Criterion, operator: TestOperator, pattern: Value): OperatorTest {
    if (criterion.pattern.kind !== 'fixed') return operator.operator.prepare(pattern, this.#budget)
    if (operator.test === undefined) {
      try {
        operator.test = operator.operator.prepare(pattern, this.#budget)
      } catch (error) {
        // Another evaluation can have enough budget left, so a limit error is not cached.
        if (!(error instanceof TemplateError) || isOver(error)) throw error
        operator.test = error
      }
    }
    if (operator.test instanceof TemplateError) throw operator.test
    return operator.test
  }

  /** True if enough items match, else false, or the first comparison that failed or has a note. */
  #search(criterion: Criterion, criteria: readonly Criterion[], value: Value): boolean | CriteriaMismatch {
    const condition = requireCondition(criterion)
    const items = listOf(value)
    let failure: CriteriaMismatch | undefined
    let noted: CriteriaMismatch | undefined
    const holds = items[condition.items]((item) => {
      const roots: Roots = { data: { item }, system: () => undefined }
      return criteria[condition.criteria]((inner) => {
        this.#budget.step()
        const outcome = this.check(inner, roots)
        if (outcome?.note !== undefined) noted ??= outcome
        if (outcome?.reason !== undefined) {
          failure ??= outcome
          this.#budget.step(FAILURE_STEPS)
        }
        return outcome === undefined
      })
    })
    return holds || (failure ?? noted ?? false)
  }
}

const EMPTIED =
  'The template of the pattern gives no text. Such a pattern matches nothing, because every text contains it.'

/** Whether a template gave an empty pattern. Every operator rejects it, also those that negate. */
function isEmptied({ pattern: { kind } }: Criterion, operator: Operator, pattern: Value): boolean {
  return kind === 'template' && pattern === '' && operator.pattern !== 'none'
}

/**
 * Missing items of the datastore are empty texts in templates, and each text begins with one. In patterns they are
 * undefined, as missing names of the payload are.
 *
 * @param gaps receives what is missing, in words
 */
function withGaps(given: unknown, path: string, gaps: string[]): unknown {
  const source = adopt(given)
  if (!(source instanceof LazyNamespace)) return given
  return {
    get: (name: string) => {
      const inner = source.get(name)
      return inner === undefined ? undefined : withGaps(inner, `${path}.${name}`, gaps)
    },
    has: (name: string) => source.has(name),
    value: () => {
      const value = source.own()
      if (value !== '') return value
      const gap = `the datastore has no value for ${path}`
      if (!gaps.includes(gap)) gaps.push(gap)
      return new Undefined(gap, 'unless printed')
    },
  }
}

function itemsOf(operator: SearchOperator, pattern: Value): readonly Criterion[] {
  if (operator.items !== undefined) return operator.items
  if (!isObject(pattern))
    throw typeError(`the pattern of search must be an object of criteria, not '${typeNameOf(pattern)}'`)
  return compile(pattern, true, true).criteria
}

function listOf(value: Value): readonly unknown[] {
  if (isList(value)) return value
  if (isObject(value)) return [value]
  throw typeError(
    `search compares the items of a list, or one object, with one of the conditions ${conditionNames}; the value is of type '${typeNameOf(value)}'`,
  )
}

const conditionNames = [...searchConditions.keys()].join(', ')

export function requireCondition({ condition }: Criterion): { items: 'some' | 'every'; criteria: 'some' | 'every' } {
  const known = condition === undefined ? undefined : searchConditions.get(condition)
  if (known !== undefined) return known
  const given = condition === undefined ? 'has no condition' : `has no condition named ${condition}`
  throw typeError(`search ${given}; use one of ${conditionNames}`)
}

/** Whether the error means that the budget is exhausted. */
export function isOver(error: unknown): boolean {
  return error instanceof TemplateError && error.code === 'LIMIT'
}

export function describe(criterion: Criterion, rendered: Value | undefined, value: Value): FailedCriterion {
  const { key, type, pattern, condition, written } = criterion
  const isMasked = pattern.kind === 'template' && pattern.isSecret && rendered !== undefined
  return {
    key,
    type,
    pattern: isMasked ? MASK : rendered === undefined ? written : rendered,
    ...(condition === undefined ? {} : { condition }),
    value,
  }
}

/** @param error a TemplateError or AppError */
export function reasonOf({ key, type, written, pattern, operator }: Criterion, stage: Stage, error: unknown): string {
  const field = shown(key)
  const why =
    error instanceof TemplateError ? reasonOfTemplate(error) : error instanceof Error ? error.message : String(error)
  if (stage === 'pattern') {
    const text = typeof written === 'string' ? shown(written) : represent(written)
    return `Failed to render pattern value "${text}" for key "${field}": ${why}`
  }
  if (stage === 'value') return `Failed to read the value of key "${field}": ${why}`
  const isMasked = pattern.kind === 'template' && pattern.isSecret && operator.kind === 'search'
  return `key "${field}", operator ${shown(type)}: ${isMasked ? 'the decrypted pattern is invalid' : why}`
}
