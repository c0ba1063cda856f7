/** Templates inside parameter values (contract 02, 2.6). svc never renders the result of a template again. */
import { adviceOnName, ourName } from './compat/index.ts'
import { templateFailed } from './errors.ts'
import { isObject } from '../lib/schema/index.ts'
import {
  Budget,
  BudgetExhausted,
  defaultLimits,
  isTemplate,
  limitError,
  partsOf,
  references,
  render,
  TemplateError,
  type HostFunction,
  type Limits,
} from '../lib/template/index.ts'
import { entriesOf, objectOf } from '../lib/json/index.ts'
import { Room, type TemplateThread, type Turn } from './rendering/index.ts'

/** The templates inside one value. */
export interface Templates {
  /** Variables that the templates read. */
  names: ReadonlySet<string>
  count: number
  /** Whether there is too much to parse. Rendering then fails. */
  isTooLong: boolean
}

const MAX_TEMPLATES = 500
/** Maximum UTF-16 units of all possible templates of one request, because svc must parse them. */
const MAX_TEMPLATE_LENGTH = 1024 * 1024
/** Of the same texts, most names, signs and texts between them: parsing 50,000 takes some 15 ms of the event loop. */
const MAX_PARTS = 50_000
/** What finding out that a text is no template counts as. */
const PARTS_OF_TEXT = 25

/** What the templates of one request may do together on the event loop: some milliseconds of work. */
const STEPS_HERE = 20_000
const WORK_HERE = 2 * 1024 * 1024
/** The same where the caller cannot wait for a thread. */
const STEPS_IN_PLACE = 50_000
const WORK_IN_PLACE = 4 * 1024 * 1024
/** A second line only. */
const MILLISECONDS_HERE = 500

/** What all templates of one request may do in the thread. */
const STEPS_THERE = 400_000
const WORK_THERE = 64 * 1024 * 1024
const MILLISECONDS_THERE = 2_000
/** Of each of them at least. */
const MIN_STEPS = 2_000
const MIN_WORK = 256 * 1024
/** UTF-16 units that the templates of one request may send to the thread: copying takes time of the event loop. */
const MAX_SENT = 64 * 1024 * 1024

/**
 * Finds the templates in a value at any depth; undefined: none. Invalid templates are plain text.
 *
 * @param read what has been parsed so far for the request; increased
 */
export function findTemplates(value: unknown, read = { length: 0, parts: 0 }): Templates | undefined {
  const names = new Set<string>()
  let count = 0
  let isTooLong = false
  const look = (text: string): void => {
    if (!text.includes('{{') && !text.includes('{%')) return
    read.length += text.length
    isTooLong ||= read.length > MAX_TEMPLATE_LENGTH || read.parts > MAX_PARTS
    // The renderer rejects all of them then, so none must be parsed.
    const isRefused = isTooLong || count > MAX_TEMPLATES
    if (!isRefused) {
      read.parts += PARTS_OF_TEXT + partsOf(text)
      if (!isTemplate(text)) return
    }
    count += 1
    if (!isRefused) for (const name of namesOf(text)) names.add(name)
  }
  const walk = (inner: unknown): void => {
    if (typeof inner === 'string') look(inner)
    else if (Array.isArray(inner)) inner.forEach(walk)
    else if (typeof inner === 'object' && inner !== null) {
      // Of a large object, twice as fast as its entries.
      for (const key of Object.keys(inner)) {
        walk(key)
        walk((inner as Record<string, unknown>)[key])
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
  const [, name = ''] = /^'(\w+)' is undefined$/.exec(error.message) ?? []
  if (ourName('template', name) !== undefined) return adviseOnTemplate(error.message, name)
  return error.isForeign ? `${error.message}. ${KEEP_AS_TEXT}` : error.message
}

/** @param name that StackStorm has, and svc under another name. No period at the end. */
export function adviseOnTemplate(message: string, name: string): string {
  return `${message}.${adviceOnName('template', name).replace(/\.$/, '')}`
}

export interface Renderer {
  /** Returns a copy of the value with every template rendered. @throws TEMPLATE_FAILED */
  render(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown
  /** Prints a value as inside text. @throws TEMPLATE_FAILED */
  print(parameter: string, value: unknown): unknown
}

/** A renderer whose templates may do more: those that take long are rendered in a thread. */
export interface PatientRenderer {
  /** Returns a copy of the value with every template rendered. @throws TEMPLATE_FAILED, QUEUE_FULL, SHUTTING_DOWN */
  render(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): Promise<unknown>
  /** Prints a value as inside text. @throws TEMPLATE_FAILED, QUEUE_FULL, SHUTTING_DOWN */
  print(parameter: string, value: unknown): Promise<unknown>
}

export interface RendererOptions {
  /** In addition to the built-in filters. */
  filters?: Readonly<Record<string, HostFunction>> | undefined
  /** Creates the error from the name of the parameter and the reason. */
  fail?: (parameter: string, why: string) => Error
}

/** Text that prints a value. */
const PRINTING = "{{ value }}{{ '' }}"

const inPlace: Limits = {
  ...defaultLimits,
  maxSteps: STEPS_IN_PLACE,
  maxWork: WORK_IN_PLACE,
  maxMilliseconds: MILLISECONDS_HERE,
}
const here: Limits = { ...inPlace, maxSteps: STEPS_HERE, maxWork: WORK_HERE }

/**
 * Creates the renderer of one request whose caller cannot wait. Its templates share the limits of the event loop.
 *
 * @param templates all templates that it will render
 */
export function createRenderer(
  templates: Pick<Templates, 'count' | 'isTooLong'>,
  { filters = {}, fail = templateFailed }: RendererOptions = {},
): Renderer {
  const budget = new Budget(inPlace, 'the template')
  const room = new Room()

  function renderParameter(parameter: string, value: unknown, variables: ReadonlyMap<string, unknown>): unknown {
    const failed = (why: string): Error => fail(parameter, why)
    refuseMany(templates, failed)
    try {
      return walkTemplates(value, failed, (text) => room.use(render(text, variables, { budget, filters })))
    } catch (error) {
      throw translated(error, failed)
    }
  }

  return {
    render: renderParameter,
    print: (parameter, value) => renderParameter(parameter, PRINTING, new Map([['value', value]])),
  }
}

/**
 * Creates the renderer of one request. Its templates share the limits. Those that take long are rendered by a thread.
 *
 * @param templates all templates that it will render
 */
export function createPatientRenderer(
  thread: TemplateThread,
  turn: Turn,
  templates: Pick<Templates, 'count' | 'isTooLong'>,
  { filters = {}, fail = templateFailed }: RendererOptions = {},
): PatientRenderer {
  const budget = new Budget(here, 'the template')
  let room = new Room()
  const maxSteps = Math.max(MIN_STEPS, Math.floor(STEPS_THERE / Math.max(2, templates.count)))
  const maxWork = Math.max(MIN_WORK, Math.floor(WORK_THERE / Math.max(1, templates.count)))
  let milliseconds = MILLISECONDS_THERE
  let sendable = MAX_SENT
  const pay = (size: number): void => {
    sendable -= size
    if (sendable < 0) throw limitError(`the templates read values of more than ${MAX_SENT} characters together`)
  }

  async function renderParameter(
    parameter: string,
    given: unknown,
    variables: ReadonlyMap<string, unknown>,
  ): Promise<unknown> {
    const failed = (why: string): Error => fail(parameter, why)
    refuseMany(templates, failed)
    /** In the order of the walk, which is the same each time. */
    const rendered: unknown[] = []
    const late: { text: string; place: number }[] = []
    const renderHere = (text: string): unknown => {
      const place = rendered.length
      try {
        rendered.push(room.use(render(text, variables, { budget, filters })))
      } catch (error) {
        if (!(error instanceof BudgetExhausted)) throw error
        rendered.push(text) // which may be a key
        late.push({ text, place })
      }
      return rendered[place]
    }
    try {
      const value = walkTemplates(given, failed, renderHere)
      if (late.length === 0) return value
      const texts = late.map(({ text }) => text)
      const names = new Set(texts.flatMap((text) => references(text).names))
      const read = objectOf([...names].flatMap((name) => (variables.has(name) ? [[name, variables.get(name)]] : [])))
      const job = { texts, variables: read, filters, maxSteps, maxWork, maxMilliseconds: milliseconds, room: room.left }
      const done = await thread.render(turn, job, pay)
      milliseconds -= done.milliseconds
      room = new Room(done.room)
      late.forEach(({ place }, index) => {
        rendered[place] = done.values[index]
      })
      let place = 0
      return walkTemplates(given, failed, () => rendered[place++])
    } catch (error) {
      throw translated(error, failed)
    }
  }

  return {
    render: renderParameter,
    print: (parameter, value) => renderParameter(parameter, PRINTING, new Map([['value', value]])),
  }
}

function refuseMany(
  { count, isTooLong }: Pick<Templates, 'count' | 'isTooLong'>,
  failed: (why: string) => Error,
): void {
  if (isTooLong) {
    const limits = `${MAX_TEMPLATE_LENGTH} characters, or ${MAX_PARTS} names, signs and texts,`
    throw failed(`the texts with templates in the parameters have more than ${limits} together`)
  }
  if (count > MAX_TEMPLATES) throw failed(`there are more than ${MAX_TEMPLATES} templates in the parameters`)
}

function translated(error: unknown, failed: (why: string) => Error): unknown {
  return error instanceof TemplateError ? failed(reasonOfTemplate(error)) : error
}

/** A copy of the value with what `replace` gives for each template. */
function walkTemplates(value: unknown, failed: (why: string) => Error, replace: (text: string) => unknown): unknown {
  const walk = (inner: unknown): unknown => {
    if (typeof inner === 'string') return isTemplate(inner) ? replace(inner) : inner
    if (Array.isArray(inner)) return inner.map(walk)
    if (!isObject(inner)) return inner
    return objectOf(entriesOf(inner).map(([key, item]) => [walkKey(key), walk(item)]))
  }
  const walkKey = (key: string): string => {
    const rendered = walk(key)
    if (typeof rendered !== 'string' || rendered === '__proto__') {
      throw failed('a key of an object must render to text other than "__proto__"')
    }
    return rendered
  }
  return walk(value)
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
    for (const name of Object.keys(inner)) {
      if (length > max) return
      length += name.length
      walk((inner as Record<string, unknown>)[name])
    }
  }
  walk(value)
  return length
}
