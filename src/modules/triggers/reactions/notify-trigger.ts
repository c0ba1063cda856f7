/** Notifications of a finished execution: one payload per route (contract 02, 2.12; 05, 5.9). */
import { isAppError } from '../../../core/errors.ts'
import type { Log } from '../../../lib/log/index.ts'
import { storedJson } from '../../../core/stored-json.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { watchDecryption } from '../../../core/parameter-scope.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import { readerOf } from '../../../core/template-reader.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import { createRenderer, findTemplates } from '../../../core/template-values.ts'
import { offsetTime } from '../../../core/time.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import { writeJson } from '../../../lib/json/index.ts'

type SectionName = 'on-success' | 'on-failure' | 'on-complete'

interface Section {
  name: SectionName
  message: string | undefined
  data: Record<string, unknown>
  routes: string[]
}

const endings: Readonly<Record<SectionName, string>> = {
  'on-success': 'succeeded',
  'on-failure': 'failed',
  'on-complete': 'completed',
}

const sectionsOf = new Map<ExecutionStatus, readonly SectionName[]>([
  ['succeeded', ['on-success', 'on-complete']],
  ['failed', ['on-failure', 'on-complete']],
  ['timeout', ['on-failure', 'on-complete']],
  ['abandoned', ['on-failure', 'on-complete']],
  ['canceled', ['on-complete']],
])

/** Routes per section. svc ignores further routes. */
const MAX_ROUTES = 100
/** Characters of results in all notifications of an execution. A larger result is replaced by its path. */
const MAX_RESULTS_LENGTH = 16 * 1024 * 1024

/**
 * Payloads as JSON texts, often none.
 *
 * @param parameters of the execution, secrets masked
 * @param templates scope of texts besides the execution
 */
export function notifyPayloads(
  execution: Execution,
  parameters: Record<string, unknown>,
  templates: (reader: TemplateReader) => TemplateScope,
  log: Log,
): string[] {
  const names = sectionsOf.get(execution.status)
  if (names === undefined) return []
  // The section of the action replaces that of the request.
  const { notify: ofAction } = execution.action
  // Names of destinations are the business of the module notifications.
  const isOfAction = isObject(ofAction) && !isEmpty(ofAction)
  const notify = isOfAction ? ofAction : (execution.liveaction.notify ?? {})
  const sections = names.flatMap((name) => {
    const section = sectionOf(name, notify[name])
    return section === undefined ? [] : [section]
  })
  const count = sections.reduce((sum, { routes }) => sum + routes.length, 0)
  if (count === 0) return []

  const isData = !isOfAction && execution.liveaction.notify_is_data === true
  const render = isData ? plain : createTextRenderer(execution, parameters, sections, isOfAction, templates, log)
  const resultText = encodedResult(execution, count)
  return sections.flatMap(({ name, message, data, routes }) => {
    const text = message === undefined || message === '' ? undefined : render.text(message)
    const rendered = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, render.value(value)]))
    delete rendered['result']
    const before = writeJson(rendered).slice(0, -1)
    const dataText = `${before}${before === '{' ? '' : ','}"result":${resultText}}`
    return routes.map((route) => {
      const head = writeJson({
        execution_id: execution.id,
        status: execution.status,
        start_timestamp: offsetTime(execution.start_timestamp, 'T'),
        end_timestamp: offsetTime(execution.end_timestamp ?? execution.start_timestamp, 'T'),
        action_ref: execution.action_ref,
        runner_ref: execution.runner.name,
        channel: route,
        route,
        message: text ?? `Action ${execution.action_ref} ${endings[name]}.`,
      })
      return `${head.slice(0, -1)},"data":${dataText}}`
    })
  })
}

function isEmpty(object: Record<string, unknown>): boolean {
  for (const _ in object) return false
  return true
}

function sectionOf(name: SectionName, given: unknown): Section | undefined {
  if (!isObject(given)) return undefined
  const { message, data, routes, channels } = given
  const named = textsOf(routes)
  const all = named.length > 0 ? named : textsOf(channels)
  if (all.length === 0) return undefined
  return {
    name,
    message: typeof message === 'string' ? message : undefined,
    data: isObject(data) ? data : {},
    routes: [...new Set(all)].slice(0, MAX_ROUTES),
  }
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

/** The result as a JSON string that contains JSON. */
function encodedResult({ id, result }: Execution, count: number): string {
  const text = result === undefined || result === null ? '{}' : storedJson(result)
  if (text.length * count <= MAX_RESULTS_LENGTH) return writeJson(text)
  const message = `The result has ${text.length} characters, too many for a notification. Read it at /v1/executions/${id}/result.`
  return writeJson(writeJson({ message }))
}

/** Renders texts. Returns a text unchanged if it cannot be rendered. */
interface TextRenderer {
  value(given: unknown): unknown
  text(given: string): unknown
}

const plain: TextRenderer = { value: (given) => given, text: (given) => given }

function createTextRenderer(
  execution: Execution,
  parameters: Record<string, unknown>,
  sections: readonly Section[],
  isOfAction: boolean,
  templates: (reader: TemplateReader) => TemplateScope,
  log: Log,
): TextRenderer {
  const found = findTemplates(sections.map(({ message, data }) => [message, data]))
  if (found === undefined) return plain
  const reader = readerOf(execution, isOfAction ? undefined : execution.liveaction.notify_author)
  const decrypted: unknown[] = []
  const scope = watchDecryption(templates(reader), (plain) => decrypted.push(plain))
  const variables = new Map<string, unknown>([
    ...Object.entries(scope.variables),
    ['action_parameters', parameters],
    ['action_results', execution.result ?? {}],
    ['action_context', execution.context],
  ])
  const renderer = createRenderer(found, { filters: scope.filters })
  const orAsWritten = (given: unknown, render: () => unknown): unknown => {
    try {
      return render()
    } catch (error) {
      if (!isAppError(error)) throw error
      log.warning('notify.template_failed', 'Could not render a notification text; svc sends it unrendered', {
        execution_id: execution.id,
        error,
      })
      return given
    }
  }
  /** Masks decrypted values, because users who can view the instance cannot all decrypt them. */
  const value = (given: unknown): unknown => {
    const rendered = renderer.render('notify', given, variables)
    return createSecretValues(decrypted)?.maskValue(rendered) ?? rendered
  }
  return {
    value: (given) => orAsWritten(given, () => value(given)),
    text: (given) =>
      orAsWritten(given, () => {
        const rendered = value(given)
        return typeof rendered === 'string' ? rendered : renderer.print('notify', rendered)
      }),
  }
}
