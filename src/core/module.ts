/** The interface of every module to the composition root. */
import type { AppError } from './errors.ts'
import type { Route } from '../http/route.ts'
import type { Retention } from './retention.ts'

/** Maintenance that a module wants to run periodically, in slices. */
export interface MaintenanceTask {
  name: string
  everySeconds: number
  run(signal: AbortSignal): Promise<void>
}

/** A number for operators. */
export interface Gauge {
  /** The statsd key without its prefix: `actionrunner.queue.work`. */
  key: string
  /** A sentence that describes it. */
  about: string
  /** Must be cheap: it is read every few seconds. A throw omits the gauge this time. */
  read(): number
}

/** A metric with one number for each of several things. Only Prometheus gets it. */
export interface Series {
  /** Name of the metric. */
  name: string
  /** A sentence that describes it. */
  about: string
  /** The label that names the thing. */
  label: string
  /** Called for each scrape: bounded and cheap. A throw omits the metric this time. */
  readonly read: () => readonly { of: string; value: number }[]
}

/** Why the server cannot work now. */
export interface NotReady {
  /** A word for `/readyz`, which anybody may read: `storage_full`. */
  reason: string
  /** A sentence for operators: what is wrong, where, and what to do. */
  problem: string
}

export interface Module {
  name: string
  /** Disabled in the configuration: the module exists and does no work. */
  isOff?: boolean
  routes?: Route[]
  maintenance?: MaintenanceTask[]
  /** Its records that are deleted by age. */
  retention?: readonly Retention[]
  gauges?: readonly Gauge[]
  series?: readonly Series[]
  /** Sentences for `GET /status` about what operators should look at. Cheap; never throws. */
  attention?(): readonly string[]
  /** Undefined: the module can work. Cheap; never throws. */
  readiness?(): NotReady | undefined
  /** Called after migrations, in the order of `app.ts`; idempotent. */
  start?(): Promise<void>
  /**
   * Reloads files that operators edit while the server runs (SIGHUP). Idempotent, never called concurrently. The module
   * logs unusable files and keeps its previous settings.
   */
  reload?(): Promise<void>
  /** Called in reverse order; idempotent; resolves when the module has stopped all its work. */
  stop?(): Promise<void>
}

/** Empty: the server can work. */
export function readinessOf(modules: readonly Module[], storage: { shortage(): AppError | undefined }): NotReady[] {
  const shortage = storage.shortage()
  return [
    ...(shortage === undefined ? [] : [{ reason: shortage.code.toLowerCase(), problem: problemOf(shortage) }]),
    ...modules.flatMap((module) => module.readiness?.() ?? []),
  ]
}

/** Errors for clients name no paths; the cause may. */
function problemOf({ message, cause }: AppError): string {
  return typeof cause === 'string' ? cause : message
}
