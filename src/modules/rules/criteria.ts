/** Criteria of rules (contract 05, 5.6): checked and compiled when a rule is read, then evaluated for each payload. */
import { criteriaInvalid, isAppError } from '../../core/errors.ts'
import { isObject, MASK, represent } from '../../lib/schema/index.ts'
import { createRenderer, findTemplates, type Renderer, type Templates } from '../../core/template-values.ts'
import {
  isTemplate,
  references,
  TemplateError,
  type TemplateScope,
  getMember,
  filterError,
  typeError,
  Budget,
  defaultLimits,
  adopt,
  isList,
  isTrue,
  typeNameOf,
  type Value,
} from '../../lib/template/index.ts'
import { findOperator, operatorNames, SEARCH, searchConditions, type Operator, type Test } from './operators.ts'
import { compilePath, type CriterionPath, type Roots } from './path.ts'
import { shown } from '../../lib/text/index.ts'

export interface CriteriaContext {
  /** Of the trigger instance, JSON data: `trigger` of keys and patterns. Templates in it stay text. */
  payload: unknown
  /** What patterns may read besides the payload; `svckv.system` is `system` too. */
  scope: TemplateScope
  /** Microseconds since the epoch. */
  now: number
}

/** A criterion with what it was compared with; of a result, the first that does not hold. */
export interface FailedCriterion {
  key: string
  type: string
  /** Rendered, if that was possible; masked when it decrypts something. */
  pattern: unknown
  condition?: string
  /** What it saw; not a copy. */
  value: unknown
}

export type CriteriaResult =
  | { matches: true }
  | {
      matches: false
      failed: FailedCriterion
      /** The two could not be compared: that is a failed rule enforcement. Holds no value but dates. */
      reason?: string
      /** Why, where criterion and value do not tell. */
      note?: string
    }

/** A criterion that was looked at, whether it holds or not. */
export interface SeenOutcome {
  seen: FailedCriterion
  holds: boolean
  /** The two could not be compared. */
  reason?: string
}

export interface CompiledCriteria {
  evaluate(context: CriteriaContext): CriteriaResult
  /** The same, and each criterion, also behind the first that does not hold; none where the payload is empty. */
  evaluateEach(context: CriteriaContext): { result: CriteriaResult; outcomes: SeenOutcome[] }
}

/** Criteria of one rule, those within patterns of `search` included. */
const MAX_CRITERIA = 500
/** `search` within `search`. */
const MAX_SEARCH_DEPTH = 5
/** Characters of all patterns of one rule together. */
const MAX_PATTERN_LENGTH = 256 * 1024
/** Values, one within the other, of a pattern. */
const MAX_PATTERN_DEPTH = 100

/** What one evaluation may spend, besides its templates: less than half a second in the worst case that was tried. */
const limits = { ...defaultLimits, maxWork: 16 * 1024 * 1024, maxMilliseconds: 500 }
const MAX_TEMPLATE_MILLISECONDS = 500
const RENDERING_STEPS = 100
/** Within `search` a criterion that cannot be compared does not end the evaluation, and takes longer than one that can. */
const FAILURE_STEPS = 20
const SUBJECT = 'the comparison'

/** What `search` compares without a pattern too. */
const PATTERN_OPTIONAL = ['exists', 'nexists', 'neq', 'nequals']

interface Criterion {
  readonly key: string
  readonly type: string
  readonly condition: string | undefined
  /** The pattern as it was given. */
  readonly written: unknown
  readonly path: CriterionPath
  readonly pattern: Pattern
  readonly operator: TestOperator | SearchOperator
}

type Pattern =
  | { kind: 'fixed'; value: Value }
  | { kind: 'template'; names: ReadonlySet<string>; isSecret: boolean }
  /** Was meant to be a template. */
  | { kind: 'broken'; error: TemplateError }

interface TestOperator {
  kind: 'test'
  operator: Operator
  /** Of a fixed pattern: made when it is first needed. */
  test: Test | TemplateError | undefined
}

interface SearchOperator {
  kind: 'search'
  /** Undefined when the pattern is a template as a whole. */
  items: readonly Criterion[] | undefined
}

interface Compiled {
  criteria: readonly Criterion[]
  templates: Pick<Templates, 'count' | 'isTooLong'>
}

/**
 * Checks and compiles the criteria of a rule. A pattern that is of no use to its operator, such as an invalid regular
 * expression, is refused when it is compared: `findProblems` tells before.
 *
 * @throws CRITERIA_INVALID
 */
export function compileCriteria(criteria: Readonly<Record<string, unknown>>): CompiledCriteria {
  const compiled = compile(criteria)
  const [first] = compiled.criteria
  if (first === undefined) {
    return { evaluate: () => ({ matches: true }), evaluateEach: () => ({ result: { matches: true }, outcomes: [] }) }
  }
  const refuse = ({ payload }: CriteriaContext): Failure | undefined =>
    isTrue(adopt(payload))
      ? undefined
      : { matches: false, failed: describe(first, undefined, null), note: 'The payload is empty.' }
  return {
    evaluate(context) {
      const refusal = refuse(context)
      if (refusal !== undefined) return refusal
      const run = new Run(compiled.templates, context)
      for (const criterion of compiled.criteria) {
        const failure = run.check(criterion)
        if (failure !== undefined) return failure
      }
      return { matches: true }
    },
    evaluateEach(context) {
      const refusal = refuse(context)
      if (refusal !== undefined) return { result: refusal, outcomes: [] }
      const run = new Run(compiled.templates, context)
      let first: Failure | undefined
      const outcomes = compiled.criteria.map((criterion): SeenOutcome => {
        const compared: Compared = { pattern: undefined, value: null }
        const failure = run.check(criterion, undefined, compared)
        first ??= failure
        return {
          seen: failure?.failed ?? describe(criterion, compared.pattern, compared.value),
          holds: failure === undefined,
          ...(failure?.reason === undefined ? {} : { reason: failure.reason }),
        }
      })
      return { result: first ?? { matches: true }, outcomes }
    },
  }
}

/**
 * What is wrong with criteria that compile and can never be compared, whatever the payload: one sentence each.
 *
 * @throws CRITERIA_INVALID
 */
export function findProblems(criteria: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = []
  const look = (criterion: Criterion): void => {
    const { pattern, operator } = criterion
    const wrongKey = problemOfKey(criterion.key)
    if (wrongKey !== undefined) problems.push(wrongKey)
    let stage: Stage = 'pattern'
    try {
      if (pattern.kind === 'broken') throw pattern.error
      stage = 'comparison'
      if (operator.kind === 'search') requireCondition(criterion)
      else if (pattern.kind === 'fixed' && pattern.value !== null) {
        operator.operator.prepare(pattern.value, new Budget(limits, SUBJECT))
      }
    } catch (error) {
      problems.push(reasonOf(criterion, stage, error))
    }
    if (operator.kind === 'search') operator.items?.forEach(look)
  }
  compile(criteria).criteria.forEach(look)
  return problems
}

/** Whether the value of a criterion comes from the datastore, however the key is written. @param key that compiles */
export function readsDatastore(key: string): boolean {
  return compilePath(key).root === 'system'
}

/** Why there can never be a value at the key of a criterion. @param key that compiles */
export function problemOfKey(key: string): string | undefined {
  const { root } = compilePath(key)
  if (root === undefined || ['trigger', 'system', 'item'].includes(root)) return undefined
  return `Nothing is ever found at the key "${shown(key)}": it has to begin with "trigger." for what happened, or with "system." for the datastore.`
}

// Compiling

/** @param isData templates have been rendered already: what looks like one is text */
function compile(criteria: Readonly<Record<string, unknown>>, isData = false, isWithinSearch = false): Compiled {
  let count = 0
  let room = MAX_PATTERN_LENGTH
  const templates = { count: 0, isTooLong: false }
  const read = { length: 0 }

  function compileAll(given: Readonly<Record<string, unknown>>, depth: number): Criterion[] {
    return Object.entries(given).map(([key, criterion]) => compileOne(key, criterion, depth))
  }

  function compileOne(key: string, given: unknown, depth: number): Criterion {
    const field = shown(key)
    const refuse = (why: string): never => {
      throw criteriaInvalid(`For field: ${field}, ${why}`)
    }
    count += 1
    if (count > MAX_CRITERIA) refuse(`a rule has at most ${MAX_CRITERIA} criteria, those within search included`)
    if (!isObject(given)) {
      throw criteriaInvalid(`Operator not specified for field: ${field}; a criterion is an object of type and pattern`)
    }
    const { type, pattern: written = null, condition = null } = given
    if (type === undefined || type === null || type === '') {
      throw criteriaInvalid(`Operator not specified for field: ${field}`)
    }
    const name = typeof type === 'string' ? (depth > 0 && type !== SEARCH ? type.toLowerCase() : type) : ''
    const operator = findOperator(name)
    if (operator === undefined && type !== SEARCH) {
      const allowed = represent(operatorNames, MAX_LIST_LENGTH)
      refuse(`operator ${shown(type)} not in list of allowed operators: ${allowed}`)
    }
    if (written === null && !(depth > 0 && PATTERN_OPTIONAL.includes(name))) {
      refuse(`no pattern specified for operator ${shown(type)}`)
    }
    room = measure(written, room)
    if (room < 0) {
      refuse(
        `the patterns of the rule hold more than ${MAX_PATTERN_LENGTH} characters, or values more than ${MAX_PATTERN_DEPTH} deep`,
      )
    }
    const path = compileKey(key, refuse)
    if (depth > 0 && path.root !== 'item') refuse('keys within the pattern of search start with "item."')
    return {
      key,
      type: name,
      condition: condition === null ? undefined : shown(condition),
      written,
      path,
      ...(operator === undefined
        ? compileSearch(written, depth + 1, refuse)
        : { operator: { kind: 'test', operator, test: undefined }, pattern: compilePattern(written) }),
    }
  }

  function compileSearch(
    written: unknown,
    depth: number,
    refuse: (why: string) => never,
  ): Pick<Criterion, 'pattern' | 'operator'> {
    if (depth > MAX_SEARCH_DEPTH) refuse(`search is nested more than ${MAX_SEARCH_DEPTH} deep`)
    if (isObject(written)) {
      const items = compileAll(written, depth)
      return { operator: { kind: 'search', items }, pattern: { kind: 'fixed', value: adopt(written) } }
    }
    const pattern = compilePattern(written)
    if (pattern.kind === 'fixed')
      refuse('the pattern of search is an object of criteria, whose keys start with "item."')
    return { operator: { kind: 'search', items: undefined }, pattern }
  }

  function compilePattern(written: unknown): Pattern {
    const fixed: Pattern = { kind: 'fixed', value: adopt(written) }
    if (isData) return fixed
    const error = findSyntaxError(written)
    if (error !== undefined) return { kind: 'broken', error }
    const found = findTemplates(written, read)
    if (found === undefined) return fixed
    templates.count += found.count
    templates.isTooLong ||= found.isTooLong
    return { kind: 'template', names: found.names, isSecret: JSON.stringify(written).includes('decrypt_kv') }
  }

  return { criteria: compileAll(criteria, isWithinSearch ? 1 : 0), templates }
}

const MAX_LIST_LENGTH = 2_000

function compileKey(key: string, refuse: (why: string) => never): CriterionPath {
  try {
    return compilePath(key)
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error
    return refuse(
      `the key is not a path: ${error.message}; names with other characters than letters, digits, _ and - are written as in trigger.headers['Name']`,
    )
  }
}

/** What is left of the room after a pattern; less than nothing when it is too large, or too deep. */
function measure(written: unknown, room: number): number {
  let left = room
  const walk = (value: unknown, depth: number): void => {
    left -= 1
    if (depth > MAX_PATTERN_DEPTH) left = -1
    if (typeof value === 'string') left -= value.length
    if (left < 0 || typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (!isList(value)) left -= name.length
      if (left < 0) return
      walk(inner, depth + 1)
    }
  }
  walk(written, 0)
  return left
}

/** Of text that begins a template and is not one. In action parameters it is plain text; here it would never match. */
function findSyntaxError(written: unknown): TemplateError | undefined {
  if (typeof written === 'string') {
    if ((!written.includes('{{') && !written.includes('{%')) || isTemplate(written)) return undefined
    try {
      references(written)
    } catch (error) {
      if (error instanceof TemplateError) return error
      throw error
    }
  } else if (typeof written === 'object' && written !== null) {
    for (const [name, inner] of Object.entries(written)) {
      const error = findSyntaxError(inner) ?? (isList(written) ? undefined : findSyntaxError(name))
      if (error !== undefined) return error
    }
  }
  return undefined
}

// Evaluating

type Failure = Extract<CriteriaResult, { matches: false }>
type Stage = 'pattern' | 'value' | 'comparison'

/** What a comparison had before it, as far as it came. */
interface Compared {
  /** Rendered. */
  pattern: Value | undefined
  value: Value
}

/** One evaluation: what its criteria share. */
class Run {
  readonly #budget = new Budget(limits, SUBJECT)
  readonly #context: CriteriaContext
  readonly #roots: Roots
  readonly #templates: Compiled['templates']
  #variables: Map<string, unknown> | undefined
  #renderer: Renderer | undefined
  readonly #rendered = new Map<Criterion, Value>()

  constructor(templates: Compiled['templates'], context: CriteriaContext) {
    this.#templates = templates
    this.#context = context
    this.#roots = { data: { trigger: context.payload }, system: () => this.#system() }
  }

  /** Why a criterion does not hold; undefined when it does. @param compared is filled in */
  check(criterion: Criterion, roots: Roots = this.#roots, compared?: Compared): Failure | undefined {
    let pattern: Value | undefined
    let value: Value = null
    let stage: Stage = 'value'
    let found: Failure | undefined
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
      } else if (
        (pattern !== null || operator.operator.acceptsNull === true) &&
        this.#testOf(criterion, operator, pattern)(value, { budget: this.#budget, now: this.#context.now })
      ) {
        return undefined
      }
    } catch (error) {
      const isRunOver = isOver(error) && roots !== this.#roots
      if (isRunOver || !(error instanceof TemplateError || isAppError(error))) throw error
      return { matches: false, failed: describe(criterion, pattern, value), reason: reasonOf(criterion, stage, error) }
    }
    return {
      matches: false,
      failed: describe(criterion, pattern, value),
      ...(found?.reason === undefined ? {} : { reason: found.reason }),
    }
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
      maxMilliseconds: MAX_TEMPLATE_MILLISECONDS,
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
    if (system !== undefined) variables.set('system', system)
    return variables
  }

  /** The part of the datastore that is everybody's. */
  #system(): unknown {
    const { system, svckv } = this.#context.scope.variables
    if (system !== undefined || svckv === undefined) return system
    return getMember(adopt(svckv), 'system')
  }

  #testOf(criterion: Criterion, operator: TestOperator, pattern: Value): Test {
    if (criterion.pattern.kind !== 'fixed') return operator.operator.prepare(pattern, this.#budget)
    if (operator.test === undefined) {
      try {
        operator.test = operator.operator.prepare(pattern, this.#budget)
      } catch (error) {
        // What this evaluation had no means for the next one may have.
        if (!(error instanceof TemplateError) || isOver(error)) throw error
        operator.test = error
      }
    }
    if (operator.test instanceof TemplateError) throw operator.test
    return operator.test
  }

  /** True when enough items fit, else false, or the first failure that was no comparison. */
  #search(criterion: Criterion, criteria: readonly Criterion[], value: Value): boolean | Failure {
    const condition = requireCondition(criterion)
    const items = listOf(value)
    let failure: Failure | undefined
    const holds = items[condition.items]((item) => {
      const roots: Roots = { data: { item }, system: () => undefined }
      return criteria[condition.criteria]((inner) => {
        this.#budget.step()
        const outcome = this.check(inner, roots)
        if (outcome?.reason !== undefined) {
          failure ??= outcome
          this.#budget.step(FAILURE_STEPS)
        }
        return outcome === undefined
      })
    })
    return holds || (failure ?? false)
  }
}

function itemsOf(operator: SearchOperator, pattern: Value): readonly Criterion[] {
  if (operator.items !== undefined) return operator.items
  if (!isObject(pattern))
    throw typeError(`the pattern of search has to be an object of criteria, not '${typeNameOf(pattern)}'`)
  return compile(pattern, true, true).criteria
}

function listOf(value: Value): readonly unknown[] {
  if (isList(value)) return value
  if (isObject(value)) return [value]
  throw typeError(
    `search compares the items of a list, or one object, under one of the conditions ${conditionNames}; the value is of type '${typeNameOf(value)}'`,
  )
}

const conditionNames = [...searchConditions.keys()].join(', ')

function requireCondition({ condition }: Criterion): { items: 'some' | 'every'; criteria: 'some' | 'every' } {
  const known = condition === undefined ? undefined : searchConditions.get(condition)
  if (known !== undefined) return known
  const given = condition === undefined ? 'has no condition' : `does not know the condition ${condition}`
  throw typeError(`search ${given}; it is one of ${conditionNames}`)
}

/** Whether what may be spent has been spent. */
function isOver(error: unknown): boolean {
  return error instanceof TemplateError && error.code === 'LIMIT'
}

function describe(criterion: Criterion, rendered: Value | undefined, value: Value): FailedCriterion {
  const { key, type, pattern, condition, written } = criterion
  const isHidden = pattern.kind === 'template' && pattern.isSecret && rendered !== undefined
  return {
    key,
    type,
    pattern: isHidden ? MASK : rendered === undefined ? written : rendered,
    ...(condition === undefined ? {} : { condition }),
    value,
  }
}

/** @param error a TemplateError or AppError */
function reasonOf({ key, type, written, pattern, operator }: Criterion, stage: Stage, error: unknown): string {
  const field = shown(key)
  const why = error instanceof Error ? error.message : String(error)
  if (stage === 'pattern') {
    const text = typeof written === 'string' ? shown(written) : represent(written)
    return `Failed to render pattern value "${text}" for key "${field}": ${why}`
  }
  if (stage === 'value') return `Failed to read the value of key "${field}": ${why}`
  const isHidden = pattern.kind === 'template' && pattern.isSecret && operator.kind === 'search'
  return `key "${field}", operator ${shown(type)}: ${isHidden ? 'the decrypted pattern cannot be used' : why}`
}
