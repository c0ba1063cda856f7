/** The interface of every module to the composition root. */
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

export interface Module {
  name: string
  /** Disabled in the configuration: the module exists and does no work. */
  isOff?: boolean
  routes?: Route[]
  maintenance?: MaintenanceTask[]
  /** Its records that are deleted by age. */
  retention?: readonly Retention[]
  gauges?: readonly Gauge[]
  /** Why the module cannot work now, as a word such as `storage_full`; undefined: it can. Cheap; never throws. */
  readiness?(): string | undefined
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

/** Why the server cannot work now, a word for each reason; empty: it can. */
export function readinessOf(
  modules: readonly Module[],
  storage: { shortage(): { code: string } | undefined },
): string[] {
  const shortage = storage.shortage()
  return [
    ...(shortage === undefined ? [] : [shortage.code.toLowerCase()]),
    ...modules.flatMap((module) => module.readiness?.() ?? []),
  ]
}
