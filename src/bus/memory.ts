/** The bus of a single process. */
import { EventEmitter } from 'eventemitter3'
import type { Bus } from './bus.ts'

/** `onListenerError` hears what a listener threw; eventemitter3 itself would stop at the first throw. */
export function createMemoryBus(onListenerError: (error: unknown, factName: string) => void): Bus {
  const emitter = new EventEmitter()
  return {
    publish(fact) {
      emitter.emit(fact.name, fact.payload)
    },
    subscribe(name, listener) {
      const guarded = (payload: Parameters<typeof listener>[0]): void => {
        try {
          listener(payload)
        } catch (error) {
          onListenerError(error, name)
        }
      }
      emitter.on(name, guarded)
      return () => emitter.off(name, guarded)
    },
  }
}
