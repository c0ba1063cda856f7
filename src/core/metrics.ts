/**
 * Port: what happens is counted and timed. Each measurement has a name and labels; what statsd and Prometheus make of it is
 * with those who send it (`modules/monitoring`). Measuring is cheap, never throws and never waits.
 */

/** Every measurement with its labels. To add one: a row here, and where it goes in `statsd-keys.ts` and `families.ts`. */
export interface Measurements {
  /** An execution has got a status (1) or lost it (-1). */
  'execution.status': { status: string }
  /** An execution has ended, whether it ever ran or not. */
  'execution.ended': { action: string; status: string }
  /** Time between the request of an execution and the begin of its run. */
  'execution.wait': { runner: string }
  /** Time of a run. */
  'execution.run': { action: string; runner: string }
  /** Time of committing a change of an execution. */
  'execution.update': Record<never, never>
  /** Time from when an execution was taken from the queue until it has a slot, or has been set aside. */
  'execution.schedule': Record<never, never>
  /** Time of planning what the end of an execution brings about: triggers and notifications. */
  'execution.reaction': Record<never, never>
  /** The same for its policies. */
  'execution.policies': Record<never, never>
  /** Time from when a trigger instance was taken from the queue until what it causes is planned. */
  'trigger.processed': { trigger: string; type: string }
  /** Time of looking at a rule for one trigger instance. */
  'rule.processed': { rule: string }
  'rule.matched': { rule: string }
  /** A request, by the pattern of its route. */
  'http.request': HttpLabels
  /** Time until its answer was sent, or the client has gone. */
  'http.response': HttpLabels & { status: string }
  /** Time of registering one kind of content of a pack. */
  'content.registered': { kind: string }
}

export interface HttpLabels {
  surface: string
  method: string
  /** Pattern of the route, such as `/executions/:id`; empty: there is none. */
  route: string
}

export type MeasurementName = keyof Measurements

export interface Metrics {
  /** @param by default 1 */
  count<N extends MeasurementName>(name: N, labels: Measurements[N], by?: number): void
  /** Counts it too. */
  time<N extends MeasurementName>(name: N, labels: Measurements[N], milliseconds: number): void
}

/** Nobody wants to know. */
export const noMetrics: Metrics = { count: () => undefined, time: () => undefined }

/** To several at once. */
export function combineMetrics(sinks: readonly Metrics[]): Metrics {
  const [first, ...others] = sinks
  if (first === undefined) return noMetrics
  if (others.length === 0) return first
  return {
    count(name, labels, by) {
      for (const sink of sinks) sink.count(name, labels, by)
    },
    time(name, labels, milliseconds) {
      for (const sink of sinks) sink.time(name, labels, milliseconds)
    },
  }
}
