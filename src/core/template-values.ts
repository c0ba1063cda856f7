/** Templates inside parameter values (contract 02, 2.6). What a template gives is data and is never rendered again. */
import { templateFailed } from './errors.ts'
import { isObject } from '../lib/schema/index.ts'
import { isTemplate, references, render, TemplateError, type HostFunction, type Limits } from '../lib/template/index.ts'

/** The templates inside one value. */
export interface Templates {
  /** Variables they read. */
  names: ReadonlySet<string>
  count: number
  /** There was too much text to look into; rendering any of it is refused. */
  isTooLong: boolean
}

const MAX_TEMPLATES = 500
/** UTF-16 units of all texts of one request that may be templates: finding out takes parsing them. */
const MAX_TEMPLATE_LENGTH = 1024 * 1024
/** What all templates of one request may spend together. */
const TOTAL_STEPS = 400_000
const TOTAL_WORK = 64 * 1024 * 1024
const TOTAL_MILLISECONDS = 2_000
/** UTF-16 units of all that the templates of one request give: a payload as large as can be, and as much again. */
const TOTAL_LENGTH = 32 * 1024 * 1024
const MIN_STEPS = 2_000
const MIN_WORK = 256 * 1024

/**
 * The templates in a value, at any depth; undefined when there is none. Text that looks like a template but is not valid
 * as one is plain text.
 *
 * @param read length of what was looked into so far for the same request; added to
 */
export function findTemplates(value: unknown, read = { length: 0 }): Templates | undefined {
  const names = new Set<string>()
  let count = 0
  let isTooLong = false
  const look = (text: string): void => {
    if (!text.includes('{{') && !text.includes('{%')) return
    read.length += text.length
    isTooLong ||= read.length > MAX_TEMPLATE_LENGTH
    // The renderer refuses all of them then, so none has to be understood.
    const isRefused = isTooLong || count > MAX_TEMPLATES
    if (!isRefused && !isTemplate(text)) return
    count += 1
    if (!isRefused) for (const name of namesOf(text)) names.add(name)
  }
  const walk = (inner: unknown): void => {
    if (typeof inner === 'string') look(inner)
    else if (typeof inner === 'object' && inner !== null) {
      for (const [key, item] of Object.entries(inner)) {
        if (!Array.isArray(inner)) walk(key)
        walk(item)
      }
    }
  }
  walk(value)
  return count === 0 ? undefined : { names, count, isTooLong }
}

/** A template that is too large, or uses what is left out on purpose, says so when it is rendered. */
function namesOf(text: string): readonly string[] {
  try {
    return references(text).names
  } catch (error) {
    if (error instanceof TemplateError) return []
    throw error
  }
}

export interface Renderer {
  /** A copy of the value with every template in it replaced by what it gives. @throws TEMPLATE_FAILED */
  render(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown
  /** A value as it would be printed inside text. @throws TEMPLATE_FAILED */
  print(parameter: string, value: unknown): unknown
}

/**
 * Makes the renderer of one request, whose templates share a bounded amount of work.
 *
 * @param templates all that it will be asked to render
 * @param filters besides those that every template has
 * @param maxMilliseconds what all of them may take together
 * @param fail makes the error out of the name of what was rendered and the reason
 */
export function createRenderer(
  { count, isTooLong }: Pick<Templates, 'count' | 'isTooLong'>,
  {
    filters = {},
    maxMilliseconds = TOTAL_MILLISECONDS,
    fail = templateFailed,
  }: {
    filters?: Readonly<Record<string, HostFunction>> | undefined
    maxMilliseconds?: number
    fail?: (parameter: string, why: string) => Error
  } = {},
): Renderer {
  const limits: Partial<Limits> = {
    maxSteps: Math.max(MIN_STEPS, Math.floor(TOTAL_STEPS / Math.max(2, count))),
    maxWork: Math.max(MIN_WORK, Math.floor(TOTAL_WORK / Math.max(1, count))),
  }

  const startedAt = performance.now()
  let room = TOTAL_LENGTH

  function renderParameter(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown {
    const renderText = (text: string): unknown => {
      const left = startedAt + maxMilliseconds - performance.now()
      const rendered = render(text, variables, { limits: { ...limits, maxMilliseconds: left }, filters })
      // One text can be in it a thousand times and costs nothing until it is written down.
      room -= textLengthOf(rendered, room)
      if (room < 0) throw fail(parameter, `the templates give more than ${TOTAL_LENGTH} characters together`)
      return rendered
    }
    const walk = (inner: unknown): unknown => {
      if (typeof inner === 'string') return isTemplate(inner) ? renderText(inner) : inner
      if (Array.isArray(inner)) return inner.map(walk)
      if (!isObject(inner)) return inner
      return Object.fromEntries(Object.entries(inner).map(([key, item]) => [walkKey(key), walk(item)]))
    }
    const walkKey = (key: string): string => {
      const rendered = walk(key)
      if (typeof rendered !== 'string' || rendered === '__proto__') {
        throw fail(parameter, 'a key of an object has to give text, and not "__proto__"')
      }
      return rendered
    }
    if (count > MAX_TEMPLATES) {
      throw fail(parameter, `there are more than ${MAX_TEMPLATES} templates in the parameters`)
    }
    if (isTooLong) {
      const limit = `${MAX_TEMPLATE_LENGTH} characters`
      throw fail(parameter, `the texts with templates in the parameters have more than ${limit} together`)
    }
    try {
      return walk(value)
    } catch (error) {
      if (error instanceof TemplateError) throw fail(parameter, error.message)
      throw error
    }
  }

  return {
    render: renderParameter,
    print: (parameter, value) => renderParameter(parameter, "{{ value }}{{ '' }}", new Map([['value', value]])),
  }
}

/** UTF-16 units of all texts in a value, and one for each value in it; beyond `max` it is not counted to the end. */
export function textLengthOf(value: unknown, max: number): number {
  let length = 0
  const walk = (inner: unknown): void => {
    length += typeof inner === 'string' ? inner.length + 1 : 1
    if (typeof inner !== 'object' || inner === null) return
    if (Array.isArray(inner)) {
      for (const item of inner) {
        if (length > max) return
        walk(item)
      }
      return
    }
    for (const [name, item] of Object.entries(inner)) {
      if (length > max) return
      length += name.length
      walk(item)
    }
  }
  walk(value)
  return length
}
