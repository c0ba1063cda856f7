import type { JSX, TargetedClipboardEvent, TargetedInputEvent } from 'preact'
import { useState } from 'preact/hooks'
import { TextArea, type TextAreaProps } from './text-area.tsx'

export interface SecretInputProps extends Omit<TextAreaProps, 'minRows' | 'isHidden' | 'isReadOnly'> {
  /** Accessible name. */
  name: string
}

/** A secret: one line, or more when such are pasted, as keys have them. It is shown on request. */
export function SecretInput(props: SecretInputProps): JSX.Element {
  const { id, text, onText, onLeave, placeholder, isInvalid, describedBy } = props
  const [isShown, setIsShown] = useState(false)
  const attributes = {
    id,
    // Browsers offer to keep what is typed as the password of this site.
    autocomplete: 'new-password',
    spellcheck: false,
    autocapitalize: 'none',
    value: text,
    placeholder,
    'aria-required': props.isRequired === true,
    'aria-invalid': isInvalid === true,
    'aria-describedby': describedBy,
    onInput: (event: TargetedInputEvent<HTMLInputElement>) => onText(event.currentTarget.value),
    onBlur: onLeave,
    onPaste(event: TargetedClipboardEvent<HTMLInputElement>) {
      const pasted = event.clipboardData?.getData('text/plain') ?? ''
      if (!pasted.trimEnd().includes('\n')) return
      // The browser would put all of it on one line.
      event.preventDefault()
      const { selectionStart, selectionEnd } = event.currentTarget
      onText(text.slice(0, selectionStart ?? 0) + pasted + text.slice(selectionEnd ?? text.length))
    },
  } as const
  return (
    <div class="secret-input">
      {text.includes('\n') ? (
        <TextArea {...props} minRows={4} isHidden={!isShown} />
      ) : isShown ? (
        <input {...attributes} type="text" />
      ) : (
        <input {...attributes} type="password" />
      )}
      <button
        type="button"
        class="quiet small"
        aria-label={`${isShown ? 'Hide' : 'Show'} ${props.name}`}
        onClick={() => setIsShown(!isShown)}
      >
        {isShown ? 'Hide' : 'Show'}
      </button>
    </div>
  )
}
