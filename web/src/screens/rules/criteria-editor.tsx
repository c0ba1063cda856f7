/** Criteria as rows: where the value is, how it is compared, and with what. */
import type { JSX } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { Failure } from '../../components/failure.tsx'
import { useOperators } from '../../components/rules/operators.ts'
import { TextArea } from '../../components/form/text-area.tsx'
import { newRow, valueOfPattern, withMoved, withType, type CriterionRow, type Problems } from './rule-model.ts'
import { writeJson } from '../../json.ts'

export interface CriteriaEditorProps {
  rows: readonly CriterionRow[]
  onRows: (rows: readonly CriterionRow[]) => void
  problems: Problems
  /** Id of the list of paths that are suggested for keys. */
  pathsId: string
  /** Within `search`: how many deep. */
  depth?: number
}

/** As the server allows. */
const MAX_DEPTH = 5

const moves = [
  [-1, 'up', '↑'],
  [1, 'down', '↓'],
] as const

export function CriteriaEditor({ rows, onRows, problems, pathsId, depth = 0 }: CriteriaEditorProps): JSX.Element {
  const replace = (changed: CriterionRow): void => onRows(rows.map((row) => (row.id === changed.id ? changed : row)))
  const { error, reload } = useOperators()
  return (
    <div class="criteria-editor">
      {error !== undefined && depth === 0 && <Failure error={error} onRetry={reload} />}
      {rows.length === 0 && depth === 0 && (
        <p class="hint">No criteria: the rule matches every event of its trigger.</p>
      )}
      {rows.map((row, index) => (
        <Row
          key={row.id}
          row={row}
          index={index}
          title={`${depth === 0 ? 'Criterion' : 'Item criterion'} ${index + 1}`}
          onRow={replace}
          onRemove={() => onRows(rows.filter(({ id }) => id !== row.id))}
          onMove={(step) => onRows(withMoved(rows, index, step))}
          canMove={{ up: index > 0, down: index < rows.length - 1 }}
          problems={problems}
          pathsId={pathsId}
          depth={depth}
        />
      ))}
      <div>
        <button type="button" onClick={() => onRows([...rows, newRow(depth === 0 ? '' : 'item.')])}>
          {depth === 0 ? 'Add criterion' : 'Add item criterion'}
        </button>
      </div>
    </div>
  )
}

function Row({
  row,
  index,
  title,
  onRow,
  onRemove,
  onMove,
  canMove,
  problems,
  pathsId,
  depth,
}: {
  row: CriterionRow
  /** Among its siblings. */
  index: number
  title: string
  onRow: (row: CriterionRow) => void
  onRemove: () => void
  /** Up or down by one. */
  onMove: (step: -1 | 1) => void
  canMove: { up: boolean; down: boolean }
  problems: Problems
  pathsId: string
  depth: number
}): JSX.Element {
  const id = useId()
  const { key, type, as, pattern, condition, items } = row
  const problem = problems.get(row.id)
  const moved = useRef<'up' | 'down'>(undefined)
  // What is moved on the page loses the focus.
  useLayoutEffect(() => {
    if (moved.current !== undefined) document.getElementById(`${id}-${moved.current}`)?.focus()
    moved.current = undefined
  }, [index])
  const { records, byName } = useOperators()
  const operator = byName.get(type) ?? (depth > 0 ? byName.get(type.toLowerCase()) : undefined)
  const meant = valueOfPattern(row, byName)
  const offered = records.filter(({ pattern: wanted }) => wanted !== 'criteria' || depth < MAX_DEPTH)
  const conditions = operator?.conditions ?? []
  return (
    <fieldset
      class="criterion"
      data-row={row.id}
      aria-describedby={problem === undefined ? undefined : `${id}-problem`}
    >
      <legend class="visually-hidden">{title}</legend>
      <div class="criterion-head">
        <div class="field">
          <label for={`${id}-key`}>Key</label>
          <input
            id={`${id}-key`}
            class="code"
            list={depth === 0 ? pathsId : undefined}
            value={key}
            placeholder={depth === 0 ? 'trigger.body.kind' : 'item.name'}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            aria-invalid={problem !== undefined}
            onInput={(event) => onRow({ ...row, key: event.currentTarget.value })}
          />
        </div>
        <div class="field">
          <label for={`${id}-type`}>Operator</label>
          <select id={`${id}-type`} value={type} onChange={(event) => onRow(withType(row, event.currentTarget.value))}>
            {!offered.some(({ name }) => name === type) && (
              <option value={type}>
                {type === '' ? 'choose one' : operator === undefined ? type : `${operator.phrase} (${type})`}
              </option>
            )}
            {offered.map(({ name, phrase }) => (
              <option key={name} value={name}>
                {phrase} ({name})
              </option>
            ))}
          </select>
        </div>
        {as === 'rows' ? (
          <div class="field">
            <label for={`${id}-condition`}>Condition</label>
            <select
              id={`${id}-condition`}
              value={condition}
              onChange={(event) => onRow({ ...row, condition: event.currentTarget.value })}
            >
              {!conditions.some(({ name }) => name === condition) && (
                <option value={condition}>{condition === '' ? 'choose one' : condition}</option>
              )}
              {conditions.map(({ name, phrase }) => (
                <option key={name} value={name}>
                  {phrase.replace(/:$/, '')} ({name})
                </option>
              ))}
            </select>
          </div>
        ) : (
          operator?.pattern !== 'none' && (
            <div class="field grow">
              <div class="criterion-pattern-head">
                <label for={`${id}-pattern`}>Pattern</label>
                <select
                  aria-label="Kind of pattern"
                  value={as === 'json' ? 'json' : 'text'}
                  onChange={(event) => onRow({ ...row, as: event.currentTarget.value === 'json' ? 'json' : 'text' })}
                >
                  <option value="text">text</option>
                  <option value="json">JSON</option>
                </select>
              </div>
              <TextArea
                id={`${id}-pattern`}
                text={pattern}
                placeholder={as === 'json' ? '12, true or ["a", "b"]' : operator?.pattern === 'seconds' ? '3600' : ''}
                isInvalid={problem !== undefined}
                onText={(text) => onRow({ ...row, pattern: text, as: as === 'none' ? 'text' : as })}
              />
            </div>
          )
        )}
        <div class="criterion-buttons">
          {(canMove.up || canMove.down) &&
            moves.map(([step, word, sign]) => (
              <button
                key={word}
                id={`${id}-${word}`}
                type="button"
                class="quiet"
                aria-label={`Move ${title.toLowerCase()} ${word}`}
                title={`Move ${word}`}
                // One that is disabled would lose the focus at the end of the way.
                aria-disabled={!canMove[word]}
                onClick={() => {
                  if (!canMove[word]) return
                  moved.current = word
                  onMove(step)
                }}
              >
                {sign}
              </button>
            ))}
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${title.toLowerCase()}`}
            title="Remove"
            onClick={onRemove}
          >
            ×
          </button>
        </div>
      </div>
      {operator !== undefined && operator.description !== '' && <p class="hint">{operator.description}</p>}
      {meant !== undefined && (
        <p class="hint">
          Compared with the string <code>{writeJson(pattern.slice(0, 100))}</code>.{' '}
          <button type="button" class="link" onClick={() => onRow({ ...row, as: 'json' })}>
            Compare with the value {pattern.trim().slice(0, 40)} instead
          </button>
        </p>
      )}
      {as === 'rows' && (
        <div class="criterion-items">
          <CriteriaEditor
            rows={items}
            onRows={(changed) => onRow({ ...row, items: changed })}
            problems={problems}
            pathsId={pathsId}
            depth={depth + 1}
          />
        </div>
      )}
      {problem !== undefined && (
        <p class="problem" role="alert" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </fieldset>
  )
}
