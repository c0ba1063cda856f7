/** What every module offers to the composition root. */
import type { Route } from './http/route.ts'

/** Work that a module wants done now and then, in slices. */
export interface UpkeepTask {
  name: string
  everySeconds: number
  run(signal: AbortSignal): Promise<void>
}

export interface Module {
  name: string
  routes?: Route[]
  upkeep?: UpkeepTask[]
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
