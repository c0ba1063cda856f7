/**
 * Port: counts and times what happens. Each measurement has a name and labels; `modules/monitoring` maps them to statsd
 * and Prometheus. Measuring is cheap, never throws and never blocks.
 */

/** Every measurement with its labels. To add one: a row here, and its mapping in `statsd-keys.ts` and `families.ts`. */
export interface Measurements {
  /** An execution has entered a status (1) or left it (-1). */
  'execution.status': { status: string }
  /** An execution has ended, even without a run. */
  'execution.ended': { action: string; status: string }
  /** Time between the request of an execution and the start of its run. */
  'execution.wait': { runner: string }
  /** Duration of a run. */
  'execution.run': { action: string; runner: string }
  /** Time to commit a change of an execution. */
  'execution.update': Record<never, never>
  /** Time from taking an execution off the queue until it has a slot or is delayed. */
  'execution.schedule': Record<never, never>
  /** Time to plan the reactions to the end of an execution: triggers and notifications. */
  'execution.reaction': Record<never, never>
  /** The same for its policies. */
  'execution.policies': Record<never, never>
  /** Duration of a workflow, from its request to its end. */
  'workflow.run': { status: string }
  /** Duration of an execution of a task, from its request to its end. */
  'workflow.action': { status: string }
  /** Time from taking a trigger instance off the queue until its effects are planned. */
  'trigger.processed': { trigger: string; type: string }
  /** Time to evaluate a rule for one trigger instance. */
  'rule.processed': { rule: string }
  'rule.matched': { rule: string }
  /** A notification waits no more: `sent`, `failed`, `suppressed` or `digested`. */
  'notification.ended': { destination: string; status: string }
  /** A request, by the pattern of its route. */
  'http.request': HttpLabels
  /** Time until the answer was sent or the client disconnected. */
  'http.response': HttpLabels & { status: string }
  /** Time to register one kind of content of a pack. */
  'content.registered': { kind: string }
}

export interface HttpLabels {
  surface: string
  method: string
  /** Pattern of the route, such as `/executions/:id`; empty: no route. */
  route: string
}

export type MeasurementName = keyof Measurements

export interface Metrics {
  /** @param by default 1 */
  count<N extends MeasurementName>(name: N, labels: Measurements[N], by?: number): void
  /** Also counts it. */
  time<N extends MeasurementName>(name: N, labels: Measurements[N], milliseconds: number): void
}

/** Discards every measurement. */
export const noMetrics: Metrics = { count: () => undefined, time: () => undefined }

/** Sends measurements to several sinks. */
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
