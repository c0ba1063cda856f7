/** A value that components show as it changes. */
import { useEffect, useState } from 'preact/hooks'

export interface Store<T> {
  readonly value: T
  set(value: T): void
  /** @returns stops it */
  subscribe(listener: () => void): () => void
}

export function createStore<T>(initial: T): Store<T> {
  const listeners = new Set<() => void>()
  let current = initial
  return {
    get value() {
      return current
    },
    set(value) {
      if (Object.is(value, current)) return
      current = value
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.value)
  useEffect(() => {
    const update = (): void => setValue(() => store.value)
    // It may have changed between drawing and listening.
    update()
    return store.subscribe(update)
  }, [store])
  return value
}
