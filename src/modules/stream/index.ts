/** Server-sent events: the general stream and the output of one execution. */
import type { Bus } from '../../bus/bus.ts'
import type { Module } from '../../module.ts'
import type { Executions } from '../executions/index.ts'
import { createWakeups } from './execution-output.ts'
import { createGeneralStream } from './general.ts'
import { createRoutes } from './routes.ts'

export interface Stream extends Module {
  /** Ends every open stream, without `EOF`, so that clients come back to the next server. */
  endAll(): void
}

export function createStream(deps: { bus: Bus; executions: Executions }): Stream {
  const { bus, executions } = deps
  const general = createGeneralStream(bus, executions)
  const stopping = new AbortController()
  const endAll = (): void => {
    stopping.abort()
    general.stop()
  }
  return {
    name: 'stream',
    routes: createRoutes({ executions, general, wakeups: createWakeups(bus), stopping: stopping.signal }),
    endAll,
    stop: () => {
      endAll()
      return Promise.resolve()
    },
  }
}
