/** JSON to be typed: says at once what is wrong with it, and where. */
import type { JSX } from 'preact'
import { useId, useMemo, useRef } from 'preact/hooks'
import { mistakeIn } from './form-model.ts'
import { readJsonText, mistakeText, type JsonMistake } from './json-text.ts'
import { TextArea } from './text-area.tsx'
import { writeJson } from '../../json.ts'

export interface JsonFieldProps {
  label: string
  /** What is typed; `readJsonText` reads it. */
  text: string
  onText: (text: string) => void
  /** What else is wrong with it, such as a refusal of the server. */
  problem?: string | undefined
  help?: string
  placeholder?: string
  /** Lines that are shown when there is less. Default 3. */
  minRows?: number
  /** `{{ … }}` may stand where a value stands. */
  allowsTemplates?: boolean
  id?: string
}

/** A field with its label, its help and what is wrong. An empty one is no mistake. */
export function JsonField(props: JsonFieldProps): JSX.Element {
  const ownId = useId()
  const { id = ownId, label, text, onText, problem, help, placeholder, minRows = 3, allowsTemplates = false } = props
  const mistake = useMemo(() => mistakeIn(text, { allowsTemplates }), [text, allowsTemplates])
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <JsonInput
        id={id}
        text={text}
        onText={onText}
        mistake={mistake}
        problem={problem}
        placeholder={placeholder}
        minRows={minRows}
        describedBy={help === undefined ? undefined : `${id}-help`}
      />
      {help !== undefined && (
        <p class="hint" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  )
}

export interface JsonInputProps {
  id: string
  text: string
  onText: (text: string) => void
  onLeave?: () => void
  mistake: JsonMistake | undefined
  /** Instead of the mistake. */
  problem: string | undefined
  placeholder?: string | undefined
  minRows?: number
  describedBy?: string | undefined
  isRequired?: boolean
  isHidden?: boolean
}

/** The control without its label. */
export function JsonInput(props: JsonInputProps): JSX.Element {
  const { id, text, onText, mistake, problem, describedBy } = props
  const area = useRef<HTMLTextAreaElement>(null)
  const message = problem ?? (mistake === undefined ? undefined : mistakeText(mistake))
  const problemId = `${id}-problem`

  function format(): void {
    const { value } = readJsonText(text)
    if (value !== undefined) onText(writeJson(value, 2))
  }
  function showMistake(): void {
    if (mistake === undefined || area.current === null) return
    area.current.focus()
    area.current.setSelectionRange(mistake.offset, mistake.offset + 1)
  }

  const canBeFormatted = mistake === undefined && /^\s*[{[]/.test(text) && text.length > 2
  return (
    <div class="json-input">
      <TextArea
        id={id}
        text={text}
        onText={onText}
        onLeave={props.onLeave}
        placeholder={props.placeholder}
        minRows={props.minRows ?? 1}
        isInvalid={message !== undefined}
        isRequired={props.isRequired ?? false}
        isHidden={props.isHidden ?? false}
        describedBy={[problemId, describedBy].filter((part) => part !== undefined).join(' ')}
        handle={area}
      />
      {canBeFormatted && props.isHidden !== true && (
        <button type="button" class="quiet small" onClick={format}>
          Format
        </button>
      )}
      {message !== undefined && (
        <p class={problem === undefined ? 'problem live' : 'problem'} id={problemId}>
          {message}
          {mistake !== undefined && (
            <button type="button" class="quiet small" onClick={showMistake}>
              Go to error
            </button>
          )}
        </p>
      )}
    </div>
  )
}
