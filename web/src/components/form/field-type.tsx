import type { JSX } from 'preact'
import { LongText } from '../long-text.tsx'
import { choiceTitles, type Field } from './field.ts'

const MAX_CHOICES_CHARS = 200

/** What a value of a field has to be, for a table of fields. */
export function FieldType({ field }: { field: Field }): JSX.Element {
  const { typeTitle, control, choices, hints, schema } = field
  const facts = [
    typeTitle,
    ...(field.mustBeGiven ? ['required'] : []),
    ...(field.isSecret ? ['secret'] : []),
    ...(field.isImmutable ? ['fixed'] : []),
    ...(typeof schema.position === 'number' ? [`position ${schema.position}`] : []),
  ]
  return (
    <>
      {facts.join(', ')}
      {control === 'choice' && (
        <div class="hint">
          one of <LongText text={choiceTitles(choices).join(', ')} maxLength={MAX_CHOICES_CHARS} />
        </div>
      )}
      {hints.length > 0 && <div class="hint">{hints.join(', ')}</div>}
    </>
  )
}
