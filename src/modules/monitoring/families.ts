/**
 * Prometheus metric families of each measurement. A label with values from content, such as action references, has a
 * maximum number of values; further ones count as `other`.
 */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { MeasurementName, Measurements, Metrics } from '../../core/metrics.ts'

const MAX_VALUES = 500
const RUN_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
const WAIT_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800]
const SHORT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5]
const HTTP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30]

type Observe<N extends MeasurementName> = (labels: Measurements[N], amount: number) => void
type Families = { readonly [N in MeasurementName]: Observe<N> }

/** Registers the metric families and records measurements in them. */
export function createFamilies(registry: Registry): Metrics {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers })
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly L[] = [],
  ): Histogram<L> => new Histogram({ name, help, labelNames, buckets, registers })

  const ended = counter('svc_action_executions_total', 'Finished executions.', ['action', 'status'])
  const endedActions = createBound()
  const runSeconds = counter('svc_action_execution_seconds_total', 'Total time of runs.', ['action'])
  const runActions = createBound()
  const runs = histogram('svc_action_execution_duration_seconds', 'Time of a run.', RUN_SECONDS, ['runner'])
  const waits = histogram(
    'svc_action_execution_wait_seconds',
    'Time from the request of an execution to the start of its run.',
    WAIT_SECONDS,
    ['runner'],
  )
  const updates = histogram(
    'svc_execution_update_duration_seconds',
    'Time to commit a change of an execution.',
    SHORT_SECONDS,
  )
  const schedules = histogram(
    'svc_scheduler_handle_execution_duration_seconds',
    'Time from the claim of an execution until it gets a slot or is delayed.',
    SHORT_SECONDS,
  )
  const workflows = histogram(
    'svc_workflow_execution_duration_seconds',
    'Time from the request of a workflow to its end.',
    RUN_SECONDS,
    ['status'],
  )
  const workflowActions = counter(
    'svc_workflow_action_executions_total',
    'Finished executions of tasks of workflows.',
    ['status'],
  )
  const triggers = counter('svc_trigger_instances_processed_total', 'Trigger instances evaluated against rules.', [
    'trigger_type',
  ])
  const triggerTypes = createBound()
  const triggerTimes = histogram(
    'svc_trigger_instance_process_duration_seconds',
    'Time to evaluate the rules for one trigger instance.',
    SHORT_SECONDS,
  )
  const rulesProcessed = counter('svc_rules_processed_total', 'Rules evaluated for a trigger instance.', ['rule'])
  const rulesMatched = counter('svc_rules_matched_total', 'Rules that matched a trigger instance.', ['rule'])
  const processedRules = createBound()
  const matchedRules = createBound()
  const requests = counter('svc_http_requests_total', 'Answered requests, by route.', [
    'surface',
    'method',
    'route',
    'status',
  ])
  const requestTimes = histogram(
    'svc_http_request_duration_seconds',
    'Time until the response is sent, without streams.',
    HTTP_SECONDS,
    ['surface', 'method'],
  )
  const registrations = histogram(
    'svc_content_register_duration_seconds',
    'Time to register one kind of pack content.',
    SHORT_SECONDS,
    ['kind'],
  )

  const notifications = counter('svc_notifications_total', 'Notifications that wait no more.', [
    'destination',
    'status',
  ])
  const destinations = createBound()

  const families: Families = {
    // Gauges already provide the current number.
    'execution.status': () => undefined,
    'execution.ended': ({ action, status }) => ended.inc({ action: endedActions(action), status }),
    'execution.wait': ({ runner }, ms) => waits.observe({ runner }, ms / 1000),
    'execution.run': ({ action, runner }, ms) => {
      runs.observe({ runner }, ms / 1000)
      runSeconds.inc({ action: runActions(action) }, ms / 1000)
    },
    'execution.update': (_labels, ms) => updates.observe(ms / 1000),
    'execution.schedule': (_labels, ms) => schedules.observe(ms / 1000),
    'execution.reaction': () => undefined,
    'execution.policies': () => undefined,
    'workflow.run': ({ status }, ms) => workflows.observe({ status }, ms / 1000),
    'workflow.action': ({ status }) => workflowActions.inc({ status }),
    'trigger.processed': ({ type }, ms) => {
      triggers.inc({ trigger_type: triggerTypes(type) })
      triggerTimes.observe(ms / 1000)
    },
    'rule.processed': ({ rule }) => rulesProcessed.inc({ rule: processedRules(rule) }),
    'rule.matched': ({ rule }) => rulesMatched.inc({ rule: matchedRules(rule) }),
    // Counted with the response, when its status is known.
    'http.request': () => undefined,
    'http.response': ({ surface, method, route, status }, ms) => {
      const known = route === '' ? 'unknown' : route
      requests.inc({ surface, method, route: known, status })
      if (surface !== 'stream') requestTimes.observe({ surface, method }, ms / 1000)
    },
    'notification.ended': ({ destination, status }) =>
      notifications.inc({ destination: destinations(destination), status }),
    'content.registered': ({ kind }, ms) => registrations.observe({ kind }, ms / 1000),
  }
  return {
    count: (name, labels, by = 1) => families[name](labels, by),
    time: (name, labels, milliseconds) => families[name](labels, milliseconds),
  }
}

/** Keeps the first values; replaces further ones by `other`. */
export function createBound(maximum = MAX_VALUES): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= maximum) return 'other'
    known.add(value)
    return value
  }
}
