/** For what nobody tells: asks again and again while the page is looked at. */
import { useEffect, useRef } from 'preact/hooks'

/** @param ask is not asked again before it has resolved; its failures are its own to show */
export function usePoll(ask: () => Promise<unknown>, everyMs: number): void {
  const latest = useRef(ask)
  latest.current = ask
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isUnderWay = false
    let isOver = false
    async function run(): Promise<void> {
      clearTimeout(timer)
      if (isUnderWay || isOver || document.hidden) return
      isUnderWay = true
      try {
        await latest.current()
      } catch {
        // As said above.
      }
      isUnderWay = false
      wait()
    }
    function wait(): void {
      clearTimeout(timer)
      if (!isOver && !document.hidden) timer = setTimeout(() => void run(), everyMs)
    }
    // Looked at again, it is brought up to date at once.
    const look = (): void => void run()
    document.addEventListener('visibilitychange', look)
    wait()
    return () => {
      isOver = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [everyMs])
}
