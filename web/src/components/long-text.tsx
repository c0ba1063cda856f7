import type { JSX } from 'preact'
import { useState } from 'preact/hooks'

/** A text that somebody wrote: its lines stay, and a long one is shown in parts. */
export function LongText({ text, maxLength = 600 }: { text: string; maxLength?: number }): JSX.Element {
  const [shown, setShown] = useState(maxLength)
  return (
    <span class="long-text">
      {/* What it does to the direction of writing ends with it. */}
      <bdi>{text.length > shown ? `${text.slice(0, shown)}…` : text}</bdi>
      {text.length > shown && (
        <button type="button" class="quiet small" onClick={() => setShown(shown + maxLength * 20)}>
          {text.length - shown} more characters
        </button>
      )}
    </span>
  )
}
