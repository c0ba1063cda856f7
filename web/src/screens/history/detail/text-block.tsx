import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { CopyButton } from '../../../components/copy-button.tsx'
import { withoutEscapes } from './problem.ts'

/** A longer one is shown from its end, where the last words are. */
const SHOWN = 8000

/** What a program has written, as text. */
export function TextBlock({ title, text, note }: { title: string; text: string; note?: string }): JSX.Element {
  const [isWhole, setIsWhole] = useState(false)
  const plain = withoutEscapes(text)
  const isCut = plain.length > SHOWN && !isWhole
  return (
    <div class="text-block">
      <div class="text-head">
        <span class="label">{title}</span>
        {note !== undefined && <span class="hint">{note}</span>}
        <CopyButton text={plain} title="Copy" />
      </div>
      {isCut && (
        <button type="button" class="link" onClick={() => setIsWhole(true)}>
          {(plain.length - SHOWN).toLocaleString()} earlier characters not shown
        </button>
      )}
      <pre tabIndex={0}>{isCut ? plain.slice(-SHOWN) : plain}</pre>
    </div>
  )
}
