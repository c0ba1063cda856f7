import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { TriggerTypeRecord } from '../../api/records.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { parametersLine } from '../../components/rules/trigger-line.ts'
import { Table } from '../../components/table.tsx'
import { hrefOf } from '../../router.ts'
import { type Catalogue, type CatalogueTrigger } from './catalogue.ts'
import { RuleLinks } from './rule-links.tsx'
import { SchemaTable } from './schema-table.tsx'
import { countText } from '../../text.ts'

const TRIGGERS_AT_ONCE = 50

/** @param props.catalogue undefined while it is loaded */
export function TypePage({ typeRef, catalogue }: { typeRef: string; catalogue: Catalogue | undefined }): JSX.Element {
  const { data, error, reload } = useLoaded(
    (signal) => get<TriggerTypeRecord>(`triggertypes/${encodeURIComponent(typeRef)}`, undefined, signal),
    [typeRef],
    ['trigger_type'],
  )
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  const { ref, pack, description, parameters_schema: parameters, payload_schema: payload, metadata_file: file } = data
  return (
    <article class="trigger-type">
      <header class="page-head">
        <h2>{ref}</h2>
        <span class="spacer" />
        <CopyButton text={ref} title="Copy reference" />
      </header>
      {description !== '' && (
        <p>
          <LongText text={description} />
        </p>
      )}
      <p class="buttons">
        <a class="button" href={hrefOf(['triggers', 'instances'], { trigger_type: ref })}>
          Trigger instances
        </a>
        <a class="button" href={hrefOf(['rules'], { trigger: ref })}>
          Show rules
        </a>
        <a class="button" href={hrefOf(['rules', 'new'], { trigger: ref })}>
          Create rule
        </a>
      </p>
      <OfType triggers={catalogue?.triggers.get(ref) ?? []} catalogue={catalogue} typeRef={ref} />
      <section class="card" aria-label="Parameters">
        <h2>Parameters</h2>
        <p class="hint">Parameters that a rule sets for its trigger.</p>
        <SchemaTable schema={parameters} label="Parameters" emptyText="No parameters." />
      </section>
      <section class="card" aria-label="Payload">
        <h2>Payload</h2>
        <p class="hint">
          Values for the criteria and templates of rules: <code>trigger.…</code>
        </p>
        <SchemaTable schema={payload} label="Payload" emptyText="Any payload." />
      </section>
      <p class="hint">
        Pack {pack}
        {file !== undefined && `, ${file}`}
      </p>
    </article>
  )
}

function OfType({
  triggers,
  catalogue,
  typeRef,
}: {
  triggers: readonly CatalogueTrigger[]
  catalogue: Catalogue | undefined
  typeRef: string
}): JSX.Element {
  const [shown, setShown] = useState(TRIGGERS_AT_ONCE)
  return (
    <section class="card" aria-label="Triggers">
      <h2>{triggers.length === 0 ? 'Triggers' : countText(triggers.length, 'trigger')}</h2>
      {catalogue !== undefined && triggers.length === 0 && (
        <p class="hint">No triggers yet. The first rule of this trigger type creates one.</p>
      )}
      {triggers.length > 0 && (
        <Table label="Triggers">
          <thead>
            <tr>
              <th scope="col">Trigger</th>
              <th scope="col">Used by</th>
              <th scope="col">
                <span class="visually-hidden">Trigger instances</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {triggers.slice(0, shown).map(({ ref, type, parameters, description }) => (
              <tr key={ref}>
                <td>
                  <div class="trigger-words">{parametersLine(type, parameters) || typeRef}</div>
                  {description !== '' && (
                    <div class="hint">
                      <LongText text={description} maxLength={200} />
                    </div>
                  )}
                  {Object.keys(parameters).length > 0 && (
                    <details class="folded">
                      <summary>Parameters</summary>
                      <JsonTree value={parameters} />
                      <p class="hint">
                        <code>{ref}</code>
                      </p>
                    </details>
                  )}
                </td>
                <td>
                  <RuleLinks rules={catalogue?.rules === undefined ? undefined : (catalogue.rules.get(ref) ?? [])} />
                </td>
                <td>
                  <a href={hrefOf(['triggers', 'instances'], { trigger: ref })}>instances</a>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {triggers.length > shown && (
        <button type="button" onClick={() => setShown(shown + TRIGGERS_AT_ONCE * 4)}>
          {triggers.length - shown} more
        </button>
      )}
    </section>
  )
}
