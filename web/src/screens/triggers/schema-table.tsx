import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { FieldType } from '../../components/form/field-type.tsx'
import { defaultTextOf, fieldsOf, parametersOfSchema } from '../../components/form/field.ts'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { Table } from '../../components/table.tsx'

const SHOWN = 100

/** The properties that a schema of an object names. @param props.label accessible name */
export function SchemaTable({
  schema,
  label,
  emptyText,
}: {
  schema: Readonly<Record<string, unknown>>
  label: string
  /** When it says nothing. */
  emptyText: string
}): JSX.Element {
  const fields = useMemo(() => {
    const properties = parametersOfSchema(schema)
    return properties === undefined ? undefined : fieldsOf(properties)
  }, [schema])
  const [shown, setShown] = useState(SHOWN)
  if (Object.keys(schema).length === 0) return <p class="hint">{emptyText}</p>
  return (
    <>
      {fields !== undefined && fields.length > 0 && (
        <Table label={label}>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Type</th>
              <th scope="col">Description</th>
            </tr>
          </thead>
          <tbody>
            {fields.slice(0, shown).map((field) => (
              <tr key={field.name}>
                <th scope="row" class="code">
                  {field.name}
                </th>
                <td>
                  <FieldType field={field} />
                </td>
                <td>
                  <LongText text={field.description} />
                  {field.defaultValue !== undefined && <div class="hint">default: {defaultTextOf(field)}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {fields !== undefined && fields.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN * 10)}>
          {fields.length - shown} more
        </button>
      )}
      <details class="folded">
        <summary>Schema</summary>
        <JsonTree value={schema} />
      </details>
    </>
  )
}
