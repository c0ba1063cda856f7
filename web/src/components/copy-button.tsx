import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { notify } from './notices.tsx'

const SHOWN_MS = 2000

/** `title` says what is copied. @param props.text a function: made when somebody wants it */
export function CopyButton({ text, title = 'Copy' }: { text: string | (() => string); title?: string }): JSX.Element {
  const [isDone, setIsDone] = useState(false)
  async function copy(): Promise<void> {
    try {
      // Browsers have no clipboard for pages that came over plain HTTP from elsewhere.
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
      setIsDone(true)
      setTimeout(() => setIsDone(false), SHOWN_MS)
    } catch {
      notify('Could not copy: the browser denies the page the clipboard. Select the text instead.', 'failure')
    }
  }
  return (
    <button type="button" class="copy" onClick={() => void copy()}>
      {isDone ? 'Copied' : title}
    </button>
  )
}
