/** Server-sent events: the general stream and the output of one execution. */
import type { Bus } from '../../bus/index.ts'
import { noCompat, type Compat } from '../../core/compat/index.ts'
import type { Module } from '../../core/module.ts'
import type { Executions } from '../executions/index.ts'
import { createWakeups } from './execution-output.ts'
import { createGeneralStream } from './general.ts'
import { createStreamRoutes, type StreamRun } from './routes.ts'

export interface Stream extends Module {
  /** Ends every open stream, without `EOF`, so that clients come back to the next server. */
  endAll(): void
}

/** @param deps.compat default: our names alone */
export function createStream(deps: { bus: Bus; executions: Executions; compat?: Pick<Compat, 'isOn'> }): Stream {
  const { bus, executions, compat = noCompat } = deps
  const general = createGeneralStream(bus, executions)
  const stopping = new AbortController()
  let openCount = 0
  const counted =
    (run: StreamRun): StreamRun =>
    async (sink) => {
      openCount += 1
      try {
        await run(sink)
      } finally {
        openCount -= 1
      }
    }
  const endAll = (): void => {
    stopping.abort()
    general.stop()
  }
  return {
    name: 'stream',
    gauges: [{ key: 'stream.connections', about: 'Open event streams.', read: () => openCount }],
    routes: createStreamRoutes({
      executions,
      general,
      wakeups: createWakeups(bus),
      stopping: stopping.signal,
      counted,
      compat,
    }),
    endAll,
    stop: () => {
      endAll()
      return Promise.resolve()
    },
  }
}
