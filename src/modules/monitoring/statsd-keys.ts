/** The statsd keys of each measurement (contract 10, 10.4), after `svc.` and the prefix. */
import type { HttpLabels, MeasurementName, Measurements } from '../../core/metrics.ts'

export interface StatsdKeys {
  counters?: readonly string[]
  /** Timers in milliseconds. */
  timers?: readonly string[]
}

const both = (...keys: readonly string[]): StatsdKeys => ({ counters: keys, timers: keys })

export const statsdKeys: { readonly [N in MeasurementName]: (labels: Measurements[N]) => StatsdKeys } = {
  'execution.status': ({ status }) => ({ counters: [`action.executions.${safe(status)}`] }),
  // Already counted by the status.
  'execution.ended': () => ({}),
  'execution.wait': () => ({}),
  'execution.run': ({ action }) => both('action.executions', `action.${safe(action)}.executions`),
  'execution.update': () => ({ timers: ['action.executions.update_status'] }),
  'execution.schedule': () => both('scheduler.handle_execution'),
  'execution.reaction': () => both('notifier.action.executions'),
  'execution.policies': () => both('notifier.apply_post_run_policies'),
  'workflow.run': () => both('orquesta.workflow.executions'),
  'workflow.action': () => both('orquesta.action.executions'),
  'trigger.processed': ({ trigger }) => both(`trigger.${safe(trigger)}.processed`),
  'rule.processed': ({ rule }) => both('rule.processed', `rule.${safe(rule)}.processed`),
  'rule.matched': ({ rule }) => ({ counters: ['rule.matched', `rule.${safe(rule)}.matched`] }),
  'http.request': (labels) => {
    if (!isCounted(labels)) return {}
    const { surface, method, route } = labels
    const key = `${surface}.request`
    return { counters: [`${key}.total`, `${key}.method.${safe(method)}`, `${key}.path.${pathKey(route)}`] }
  },
  'http.response': (labels) => {
    if (!isCounted(labels)) return {}
    const { surface, status } = labels
    return {
      counters: [`${surface}.request`, `${surface}.response.status.${safe(status)}`],
      timers: [`${surface}.request`],
    }
  },
  'notification.ended': ({ status }) => ({ counters: [`notifications.${safe(status)}`] }),
  'content.registered': ({ kind }) => ({ timers: [`register.${safe(kind)}`] }),
}

const maximumPartLength = 200
const unsafe = /[^\w.-]/g

/** Replaces characters with a meaning in statsd or file names by `_`. Dots stay. */
export function safe(part: string): string {
  const short = part.length > maximumPartLength ? part.slice(0, maximumPartLength) : part
  return short.replace(unsafe, '_')
}

/** Unknown paths and reads of a single object are not counted. */
function isCounted({ method, route }: HttpLabels): boolean {
  return route !== '' && !(method === 'GET' && /\/[:*][^/]*$/.test(route))
}

/** `/executions/:id/output` → `_v1_executions_id_output` */
function pathKey(route: string): string {
  const names = route.replace(/[:*{}]/g, '')
  return safe(`/v1${names === '/' ? '' : names}`.replaceAll('/', '_'))
}
