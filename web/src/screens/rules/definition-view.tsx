import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useLoaded } from '../../api/load.ts'
import type { RuleDefinition } from '../../api/records.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { definitionText, type DefinitionForm } from './definition-text.ts'

const forms: readonly [form: DefinitionForm, title: string][] = [
  ['yaml', 'YAML'],
  ['json', 'JSON'],
]
/** Longer ones are copied as a whole all the same. */
const MAX_SHOWN = 100_000

/** To be kept in a file, or used on another server; made when it is opened first. */
export function DefinitionView({ definition }: { definition: RuleDefinition }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  const [form, setForm] = useState<DefinitionForm>('yaml')
  return (
    <section class="card">
      <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>Definition as YAML or JSON</summary>
        <p class="hint">
          The input of <code>svc rule create</code>. Secrets are masked: enter them before you use it elsewhere.
        </p>
        <div class="buttons" role="group" aria-label="Definition format">
          {forms.map(([name, title]) => (
            <button key={name} type="button" aria-pressed={name === form} onClick={() => setForm(name)}>
              {title}
            </button>
          ))}
        </div>
        {isOpen && <Text definition={definition} form={form} />}
      </details>
    </section>
  )
}

function Text({ definition, form }: { definition: RuleDefinition; form: DefinitionForm }): JSX.Element {
  const { data, error, reload } = useLoaded(() => definitionText(definition, form), [definition, form])
  if (error !== undefined && data === undefined) {
    // After an upgrade of the server the files of this page have other names.
    return <Failure error="Could not load the YAML writer. Retry, or choose JSON." onRetry={reload} />
  }
  if (data === undefined) return <p class="loading">Loading…</p>
  return (
    <>
      <CopyButton text={data} title="Copy definition" />
      <pre class="rules-definition" tabIndex={0} aria-label="Definition">
        {data.length > MAX_SHOWN ? `${data.slice(0, MAX_SHOWN).toWellFormed()}…` : data}
      </pre>
    </>
  )
}
