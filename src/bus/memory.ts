/** The bus of a single process. */
import { EventEmitter } from 'eventemitter3'
import type { Bus } from './bus.ts'
import type { Fact } from './facts.ts'

/** @param onListenerError receives what a listener threw; eventemitter3 itself would stop at the first throw */
export function createMemoryBus(onListenerError: (error: unknown, factName: string) => void): Bus {
  const emitter = new EventEmitter()
  /** Facts that listeners published during a delivery: they wait, so that all listeners see the same order. */
  const following: Fact[] = []
  let isPublishing = false
  return {
    publish(fact) {
      following.push(fact)
      if (isPublishing) return
      isPublishing = true
      try {
        for (let next = following.shift(); next !== undefined; next = following.shift()) {
          emitter.emit(next.name, next.payload)
        }
      } finally {
        isPublishing = false
      }
    },
    subscribe(name, listener) {
      let isSubscribed = true
      const guarded = (payload: Parameters<typeof listener>[0]): void => {
        if (!isSubscribed) return
        try {
          listener(payload)
        } catch (error) {
          onListenerError(error, name)
        }
      }
      emitter.on(name, guarded)
      return () => {
        isSubscribed = false
        emitter.off(name, guarded)
      }
    },
  }
}
