/** What every module offers to the composition root. */
import type { Route } from '../http/route.ts'
import type { Retention } from './retention.ts'

/** Work that a module wants done now and then, in slices. */
export interface MaintenanceTask {
  name: string
  everySeconds: number
  run(signal: AbortSignal): Promise<void>
}

/** A number that operators watch. */
export interface Gauge {
  /** As in statsd, behind the prefix: `actionrunner.queue.work`. */
  key: string
  /** A sentence. */
  about: string
  /** Cheap: it is read every few seconds. May throw; then it is left out this time. */
  read(): number
}

export interface Module {
  name: string
  /** Switched off in the configuration: the module is there and does no work. */
  isOff?: boolean
  routes?: Route[]
  maintenance?: MaintenanceTask[]
  /** Records of its own that go when they are old. */
  retention?: readonly Retention[]
  gauges?: readonly Gauge[]
  /** Why the module cannot do its work now, as a word such as `storage_full`; undefined: it can. Cheap; never throws. */
  readiness?(): string | undefined
  /** Called after migrations, in the order of `app.ts`; idempotent. */
  start?(): Promise<void>
  /**
   * Reads again what people change in files while the server runs (SIGHUP); idempotent, never called twice at a time.
   * What cannot be used is logged and changes nothing: the module goes on with what it had.
   */
  reload?(): Promise<void>
  /** Called in reverse order; idempotent; resolves when nothing the module owns is left running. */
  stop?(): Promise<void>
}

/** Why the server cannot do its work now, a word for each reason; empty: it can. */
export function readinessOf(modules: readonly Module[], storage: { hasRoom(): boolean }): string[] {
  return [...(storage.hasRoom() ? [] : ['storage_full']), ...modules.flatMap((module) => module.readiness?.() ?? [])]
}
