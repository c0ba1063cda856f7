import { expect, it } from 'vitest'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { ApiRequest } from '../../http/index.ts'
import type { Outputs } from './run/output.ts'
import { createSensorRoutes } from './routes.ts'
import type { SensorService } from './service.ts'
import type { SensorStore } from './store.ts'

it('a request that waits for output ends when its client is gone', async () => {
  let signal: AbortSignal | undefined
  const outputs: Partial<Outputs> = {
    of: () => ({ add: () => undefined, flush: () => Promise.resolve() }),
    after: () => [],
    lastSeq: () => 0,
    wait: (_id, _seq, given) => {
      signal = given
      return new Promise((resolve) => given.addEventListener('abort', () => resolve()))
    },
  }
  const service: Partial<SensorService> = { get: () => ({ id: 'an id' }) as ReturnType<SensorService['get']> }
  const routes = createSensorRoutes({
    service: service as SensorService,
    store: {} as SensorStore,
    outputs: outputs as Outputs,
    maxPageSize: 100,
  })
  const route = routes.find(({ path }) => path.endsWith('/output'))
  const listeners = new Set<() => void>()
  const request: Partial<ApiRequest> = {
    params: { ref_or_id: 'an id' },
    query: { wait: 60 },
    onClose(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const answer = route?.handler(request as ApiRequest)
  await waitFor('the request to wait', () => signal !== undefined)
  expect(signal?.aborted).toBe(false)
  for (const listener of listeners) listener()
  expect(await answer).toEqual([])
  expect(listeners.size).toBe(0)
})
