/** JSON as a tree that opens by level. Long lists and texts are shown in parts: a result may have megabytes. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { JsonNumber, entriesOf } from '../json.ts'

const OPEN_LEVELS = 2
const ITEMS_AT_ONCE = 100
const MAX_TEXT_LENGTH = 2000

export function JsonTree({ value, name }: { value: unknown; name?: string }): JSX.Element {
  return (
    <div class="json-tree">
      <Node name={name} value={value} level={0} />
    </div>
  )
}

function Node({ name, value, level }: { name: string | undefined; value: unknown; level: number }): JSX.Element {
  const label = name === undefined ? null : <span class="json-name">{name}: </span>
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) {
    return (
      <div class="json-leaf">
        {label}
        <Leaf value={value} />
      </div>
    )
  }
  return <Branch name={name} value={value} level={level} />
}

function Branch({ name, value, level }: { name: string | undefined; value: object; level: number }): JSX.Element {
  const entries = Array.isArray(value)
    ? value.map((item: unknown, i): [string, unknown] => [String(i), item])
    : entriesOf(value as Readonly<Record<string, unknown>>)
  const [isOpen, setIsOpen] = useState(level < OPEN_LEVELS)
  const [shown, setShown] = useState(ITEMS_AT_ONCE)
  const summary = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`
  const label = name === undefined ? null : <span class="json-name">{name}: </span>
  if (entries.length === 0) {
    return (
      <div class="json-leaf">
        {label}
        {Array.isArray(value) ? '[]' : '{}'}
      </div>
    )
  }
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {label}
        <span class="json-summary">{summary}</span>
      </summary>
      {isOpen && (
        <div class="json-items">
          {entries.slice(0, shown).map(([key, item]) => (
            <Node key={key} name={key} value={item} level={level + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" class="quiet" onClick={() => setShown(shown + ITEMS_AT_ONCE * 10)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </details>
  )
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  const [isWhole, setIsWhole] = useState(false)
  if (typeof value !== 'string') return <span class="json-value">{String(value)}</span>
  const isLong = value.length > MAX_TEXT_LENGTH && !isWhole
  return (
    <span class="json-text">
      {isLong ? value.slice(0, MAX_TEXT_LENGTH) : value}
      {isLong && (
        <button type="button" class="quiet" onClick={() => setIsWhole(true)}>
          {value.length - MAX_TEXT_LENGTH} more characters
        </button>
      )}
    </span>
  )
}
