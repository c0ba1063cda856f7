/**
 * What Prometheus is told of each measurement: families of metrics with labels. A label that content gives its values, such
 * as the reference of an action, has so many at most; those beyond it are counted as `other`.
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

/** Measurements as Prometheus has them, in this registry. */
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

  const ended = counter('svc_action_executions_total', 'Executions that have ended.', ['action', 'status'])
  const endedActions = createBound()
  const runSeconds = counter('svc_action_execution_seconds_total', 'Time that runs have taken.', ['action'])
  const runActions = createBound()
  const runs = histogram('svc_action_execution_duration_seconds', 'Time of a run.', RUN_SECONDS, ['runner'])
  const waits = histogram(
    'svc_action_execution_wait_seconds',
    'Time between the request of an execution and the begin of its run.',
    WAIT_SECONDS,
    ['runner'],
  )
  const updates = histogram(
    'svc_execution_update_duration_seconds',
    'Time of committing a change of an execution.',
    SHORT_SECONDS,
  )
  const schedules = histogram(
    'svc_scheduler_handle_execution_duration_seconds',
    'Time from when an execution was taken from the queue until it has a slot, or was set aside.',
    SHORT_SECONDS,
  )
  const triggers = counter(
    'svc_trigger_instances_processed_total',
    'Trigger instances that rules were looked at for.',
    ['trigger_type'],
  )
  const triggerTypes = createBound()
  const triggerTimes = histogram(
    'svc_trigger_instance_process_duration_seconds',
    'Time of looking at the rules for one trigger instance.',
    SHORT_SECONDS,
  )
  const rulesProcessed = counter('svc_rules_processed_total', 'Rules looked at for a trigger instance.', ['rule'])
  const rulesMatched = counter('svc_rules_matched_total', 'Rules that matched a trigger instance.', ['rule'])
  const processedRules = createBound()
  const matchedRules = createBound()
  const requests = counter('svc_http_requests_total', 'Requests answered, by the pattern of their path.', [
    'surface',
    'method',
    'route',
    'status',
  ])
  const requestTimes = histogram(
    'svc_http_request_duration_seconds',
    'Time until the answer was sent, streams aside.',
    HTTP_SECONDS,
    ['surface', 'method'],
  )
  const registrations = histogram(
    'svc_content_register_duration_seconds',
    'Time of registering one kind of content of a pack.',
    SHORT_SECONDS,
    ['kind'],
  )

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
    'trigger.processed': ({ type }, ms) => {
      triggers.inc({ trigger_type: triggerTypes(type) })
      triggerTimes.observe(ms / 1000)
    },
    'rule.processed': ({ rule }) => rulesProcessed.inc({ rule: processedRules(rule) }),
    'rule.matched': ({ rule }) => rulesMatched.inc({ rule: matchedRules(rule) }),
    // Counted with the answer, when its status is known.
    'http.request': () => undefined,
    'http.response': ({ surface, method, route, status }, ms) => {
      const known = route === '' ? 'unknown' : route
      requests.inc({ surface, method, route: known, status })
      if (surface !== 'stream') requestTimes.observe({ surface, method }, ms / 1000)
    },
    'content.registered': ({ kind }, ms) => registrations.observe({ kind }, ms / 1000),
  }
  return {
    count: (name, labels, by = 1) => families[name](labels, by),
    time: (name, labels, milliseconds) => families[name](labels, milliseconds),
  }
}

/** The first values there are stay as they are. */
export function createBound(maximum = MAX_VALUES): (value: string) => string {
  const known = new Set<string>()
  return (value) => {
    if (known.has(value)) return value
    if (known.size >= maximum) return 'other'
    known.add(value)
    return value
  }
}
