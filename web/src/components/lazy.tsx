/** A component whose code is loaded when it is first shown. */
import type { ComponentType, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { useRetry } from '../api/retry.ts'
import { isServerAnswering, sendRequest } from '../api/transport.ts'
import { Failure } from './failure.tsx'

/** Nobody says why a module was not loaded. */
const unreached = new ApiError('', 0)

async function isReachable(): Promise<boolean> {
  try {
    await sendRequest('GET', 'api/v1/user', {}, {})
    return isServerAnswering.value
  } catch {
    return false
  }
}

export type LazyComponent<Props> = ComponentType<Props> & {
  /** Loads the code before the component is shown. */
  preload(): void
}

export function lazy<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyComponent<Props> {
  let loaded: ComponentType<Props> | undefined
  async function loadOnce(): Promise<void> {
    loaded ??= (await load()).default
  }
  return Object.assign(Lazy, { preload: () => void loadOnce().catch(() => undefined) })

  function Lazy(props: Props): JSX.Element {
    const [, setCount] = useState(0)
    const [hasFailed, setHasFailed] = useState(false)
    // It may have come between drawing and looking.
    const wasLoaded = loaded !== undefined
    useEffect(() => {
      if (wasLoaded || hasFailed) return
      loadOnce().then(
        () => setCount((n) => n + 1),
        () => setHasFailed(true),
      )
    }, [hasFailed])
    const [isUnreachable, setIsUnreachable] = useState(false)
    useEffect(() => {
      if (hasFailed) void isReachable().then((is) => setIsUnreachable(!is))
    }, [hasFailed])
    // A browser does not ask again for a module that it could not load.
    useRetry(isUnreachable ? unreached : undefined, () => void isReachable().then((is) => is && location.reload()))
    if (hasFailed) {
      // After an upgrade of the server the files of this page have other names.
      const error = 'Could not load this part of the page: the server is unreachable or was upgraded. Reload the page.'
      return <Failure error={error} retryTitle="Reload" onRetry={() => location.reload()} />
    }
    if (loaded === undefined) return <p class="loading">Loading…</p>
    const Component = loaded
    return <Component {...props} />
  }
}
