import type { JSX } from 'preact'
import type { Ref } from 'preact'

export interface TextAreaProps {
  id: string
  text: string
  onText: (text: string) => void
  onLeave?: (() => void) | undefined
  placeholder?: string | undefined
  /** Lines that are shown when there is less. */
  minRows?: number
  isInvalid?: boolean
  isReadOnly?: boolean
  /** Ids of what explains it. */
  describedBy?: string | undefined
  /** What is typed is not to be seen. */
  isHidden?: boolean
  isRequired?: boolean
  handle?: Ref<HTMLTextAreaElement>
}

const MAX_ROWS = 20

/** One line that grows with what is typed. */
export function TextArea(props: TextAreaProps): JSX.Element {
  const { id, text, onText, onLeave, placeholder, minRows = 1, isInvalid = false, isReadOnly = false } = props
  return (
    <textarea
      id={id}
      ref={props.handle ?? null}
      class={`grows ${props.isHidden === true ? 'hidden-text' : ''}`}
      rows={Math.min(Math.max(minRows, linesIn(text)), MAX_ROWS)}
      value={text}
      placeholder={placeholder}
      readOnly={isReadOnly}
      required={false}
      aria-required={props.isRequired === true}
      aria-invalid={isInvalid}
      aria-describedby={props.describedBy}
      spellcheck={false}
      autocomplete="off"
      autocapitalize="none"
      onInput={(event) => onText(event.currentTarget.value)}
      onBlur={onLeave}
    />
  )
}

function linesIn(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at !== -1 && count < MAX_ROWS; at = text.indexOf('\n', at + 1)) count += 1
  return count
}
