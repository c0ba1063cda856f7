import type { JSX } from 'preact'
import { CopyButton } from '../../components/copy-button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { curlLine } from './key-form.ts'

/** The value of a new key, shown once: the caller drops it when the dialog is done. */
export function NewKeyDialog({
  value,
  name,
  onDone,
}: {
  value: string
  name: string
  onDone: () => void
}): JSX.Element {
  const curl = curlLine(value, document.baseURI)
  return (
    <Dialog title={`The key “${name}”`} onClose={onDone} stays>
      <p>
        <strong>svc shows this key only once.</strong> The server keeps no copy. Store it where the program reads it
        before you continue.
      </p>
      <div class="once">
        <code aria-label="API key">{value}</code>
        <CopyButton text={value} title="Copy key" />
      </div>
      <p class="hint">To test it:</p>
      <div class="once">
        <pre>{curl}</pre>
        <CopyButton text={curl} title="Copy command" />
      </div>
      <div class="buttons">
        <button type="button" class="primary" onClick={onDone}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
