/** A lock per name; waiting can be aborted. */
export function createLocks(): { hold<T>(name: string, signal: AbortSignal, body: () => Promise<T>): Promise<T> } {
  const tails = new Map<string, Promise<void>>()
  return {
    async hold(name, signal, body) {
      const before = tails.get(name) ?? Promise.resolve()
      const { promise: done, resolve: release } = withResolvers()
      const tail = before.then(() => done)
      tails.set(name, tail)
      void tail.then(() => {
        if (tails.get(name) === tail) tails.delete(name)
      })
      try {
        await unlessAborted(before, signal)
        return await body()
      } finally {
        release()
      }
    },
  }
}

/** @throws the reason of the abort */
async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = withResolvers()
  signal.addEventListener('abort', resolve)
  try {
    if (!signal.aborted) await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', resolve)
  }
  signal.throwIfAborted()
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
