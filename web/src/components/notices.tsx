/** Short messages about what the user did. */
import type { JSX } from 'preact'
import { createStore, useStore } from '../store.ts'

type Kind = 'success' | 'failure'

interface Notice {
  id: number
  text: string
  kind: Kind
}

const SHOWN_MS = 8000
const MAX_SHOWN = 4

const notices = createStore<readonly Notice[]>([])
let lastId = 0

/** Failures stay until they are dismissed. */
export function notify(text: string, kind: Kind = 'success'): void {
  const id = (lastId += 1)
  notices.set([...notices.value, { id, text, kind }].slice(-MAX_SHOWN))
  if (kind === 'success') setTimeout(() => dismiss(id), SHOWN_MS)
}

function dismiss(id: number): void {
  notices.set(notices.value.filter((notice) => notice.id !== id))
}

export function Notices(): JSX.Element {
  const shown = useStore(notices)
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map(({ id, text, kind }) => (
        <div key={id} class="notice" data-kind={kind}>
          <span>{text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  )
}
