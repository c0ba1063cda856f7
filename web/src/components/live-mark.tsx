import type { JSX } from 'preact'
import { liveConnection } from '../api/execution-events.ts'
import { useStore } from '../store.ts'

const titles = {
  connecting: 'Connecting',
  open: 'Live',
  lost: 'Reconnecting',
  ended: 'Not live',
} as const

/** Whether changes are shown as they happen. */
export function LiveMark(): JSX.Element | null {
  const connection = useStore(liveConnection)
  if (connection === undefined) return null
  return (
    <span class="live-mark" data-connection={connection} role="status">
      {titles[connection]}
    </span>
  )
}
