import type { JSX } from 'preact'
import type { PayloadPath } from '../../components/rules/paths.ts'

/** What a recorded event holds, to be put where somebody was typing. */
export function EventPaths({
  paths,
  onInsert,
}: {
  paths: readonly PayloadPath[]
  onInsert: (path: string) => void
}): JSX.Element {
  return (
    <details class="rules-paths">
      <summary>Insert an event value</summary>
      <p class="hint">Inserts at the cursor: a template in parameters and patterns, a path in keys.</p>
      <ul class="list">
        {paths.map(({ path, preview }) => (
          <li key={path}>
            <button type="button" class="quiet" onClick={() => onInsert(path)}>
              <code>{path}</code> <span class="hint">{preview}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}
