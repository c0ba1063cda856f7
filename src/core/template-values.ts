/** Templates inside parameter values (contract 02, 2.6). svc never renders the result of a template again. */
import { templateFailed } from './errors.ts'
import { isObject } from '../lib/schema/index.ts'
import { isTemplate, references, render, TemplateError, type HostFunction, type Limits } from '../lib/template/index.ts'
import { entriesOf, objectOf } from '../lib/json/index.ts'

/** The templates inside one value. */
export interface Templates {
  /** Variables that the templates read. */
  names: ReadonlySet<string>
  count: number
  /** Whether the text is too long to parse. Rendering then fails. */
  isTooLong: boolean
}

const MAX_TEMPLATES = 500
/** Maximum UTF-16 units of all possible templates of one request, because svc must parse them. */
const MAX_TEMPLATE_LENGTH = 1024 * 1024
/** Maximum steps of all templates of one request. */
const TOTAL_STEPS = 400_000
const TOTAL_WORK = 64 * 1024 * 1024
const TOTAL_MILLISECONDS = 2_000
/**
 * The same for the templates that a caller sends with a request, which run on the event loop before it is answered: some
 * 30 ms of work. Defaults and rules, whose authors have permissions of their own, may do more.
 */
const CALLER_STEPS = 100_000
const CALLER_WORK = 8 * 1024 * 1024
const CALLER_MILLISECONDS = 500
/** Maximum UTF-16 units that all templates of one request render to: twice the largest payload. */
const TOTAL_LENGTH = 32 * 1024 * 1024
const MIN_STEPS = 2_000
const MIN_WORK = 256 * 1024

/**
 * Finds the templates in a value at any depth; undefined: none. Invalid templates are plain text.
 *
 * @param read length of text parsed so far for the request; increased
 */
export function findTemplates(value: unknown, read = { length: 0 }): Templates | undefined {
  const names = new Set<string>()
  let count = 0
  let isTooLong = false
  const look = (text: string): void => {
    if (!text.includes('{{') && !text.includes('{%')) return
    read.length += text.length
    isTooLong ||= read.length > MAX_TEMPLATE_LENGTH
    // The renderer rejects all of them then, so none must be parsed.
    const isRefused = isTooLong || count > MAX_TEMPLATES
    if (!isRefused && !isTemplate(text)) return
    count += 1
    if (!isRefused) for (const name of namesOf(text)) names.add(name)
  }
  const walk = (inner: unknown): void => {
    if (typeof inner === 'string') look(inner)
    else if (Array.isArray(inner)) inner.forEach(walk)
    else if (typeof inner === 'object' && inner !== null) {
      for (const [key, item] of Object.entries(inner)) {
        walk(key)
        walk(item)
      }
    }
  }
  walk(value)
  return count === 0 ? undefined : { names, count, isTooLong }
}

/** Empty for a template that is too large or unsupported; rendering reports the error. */
function namesOf(text: string): readonly string[] {
  try {
    return references(text).names
  } catch (error) {
    if (error instanceof TemplateError) return []
    throw error
  }
}

/** For an error about text that may belong to another program. No period at the end. */
export const KEEP_AS_TEXT = 'To keep such text as it is, write {% raw %} before it and {% endraw %} after it'

/** Why a template fails; what to write if it was meant for another program. No period at the end. */
export function reasonOfTemplate(error: TemplateError): string {
  return error.isForeign ? `${error.message}. ${KEEP_AS_TEXT}` : error.message
}

export interface Renderer {
  /** Returns a copy of the value with every template rendered. @throws TEMPLATE_FAILED */
  render(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown
  /** Prints a value as inside text. @throws TEMPLATE_FAILED */
  print(parameter: string, value: unknown): unknown
}

/**
 * Creates the renderer of one request. Its templates share the limits.
 *
 * @param templates all templates that it will render
 * @param filters in addition to the built-in filters
 * @param isOfCaller whether a caller has sent the templates; then they may do less
 * @param maxMilliseconds maximum time of all templates
 * @param fail creates the error from the name of the parameter and the reason
 */
export function createRenderer(
  { count, isTooLong }: Pick<Templates, 'count' | 'isTooLong'>,
  {
    filters = {},
    isOfCaller = false,
    maxMilliseconds = isOfCaller ? CALLER_MILLISECONDS : TOTAL_MILLISECONDS,
    fail = templateFailed,
  }: {
    filters?: Readonly<Record<string, HostFunction>> | undefined
    isOfCaller?: boolean
    maxMilliseconds?: number
    fail?: (parameter: string, why: string) => Error
  } = {},
): Renderer {
  const limits: Partial<Limits> = {
    maxSteps: Math.max(MIN_STEPS, Math.floor((isOfCaller ? CALLER_STEPS : TOTAL_STEPS) / Math.max(2, count))),
    maxWork: Math.max(MIN_WORK, Math.floor((isOfCaller ? CALLER_WORK : TOTAL_WORK) / Math.max(1, count))),
  }

  const startedAt = performance.now()
  let room = TOTAL_LENGTH

  function renderParameter(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown {
    const renderText = (text: string): unknown => {
      const left = startedAt + maxMilliseconds - performance.now()
      const rendered = render(text, variables, { limits: { ...limits, maxMilliseconds: left }, filters })
      // A text that occurs a thousand times needs no memory until it is serialized.
      room -= textLengthOf(rendered, room)
      if (room < 0) throw fail(parameter, `the templates give more than ${TOTAL_LENGTH} characters together`)
      return rendered
    }
    const walk = (inner: unknown): unknown => {
      if (typeof inner === 'string') return isTemplate(inner) ? renderText(inner) : inner
      if (Array.isArray(inner)) return inner.map(walk)
      if (!isObject(inner)) return inner
      return objectOf(entriesOf(inner).map(([key, item]) => [walkKey(key), walk(item)]))
    }
    const walkKey = (key: string): string => {
      const rendered = walk(key)
      if (typeof rendered !== 'string' || rendered === '__proto__') {
        throw fail(parameter, 'a key of an object must render to text other than "__proto__"')
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
      if (error instanceof TemplateError) throw fail(parameter, reasonOfTemplate(error))
      throw error
    }
  }

  return {
    render: renderParameter,
    print: (parameter, value) => renderParameter(parameter, "{{ value }}{{ '' }}", new Map([['value', value]])),
  }
}

/** UTF-16 units of all texts in a value, plus one per value. Stops counting beyond `max`. */
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
