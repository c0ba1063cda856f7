import { useEffect, useState } from 'preact/hooks'

/** Whether a media query holds: `(max-width: 700px)`. */
export function useMedia(query: string): boolean {
  const [list] = useState(() => window.matchMedia(query))
  const [holds, setHolds] = useState(list.matches)
  useEffect(() => {
    const look = (): void => setHolds(list.matches)
    look()
    list.addEventListener('change', look)
    return () => list.removeEventListener('change', look)
  }, [list])
  return holds
}
