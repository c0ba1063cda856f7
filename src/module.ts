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
  /** Called in reverse order; idempotent; resolves when nothing the module owns is left running. */
  stop?(): Promise<void>
}
