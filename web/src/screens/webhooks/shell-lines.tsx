import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { CopyButton } from '../../components/copy-button.tsx'
import { Fold } from './fold.tsx'
import type { Recipe } from './proof.ts'

/** What to type in a terminal, in one of several ways. */
export function ShellLines({ recipes }: { recipes: readonly Recipe[] }): JSX.Element {
  const [chosen, setChosen] = useState(0)
  const selectId = useId()
  const recipe = recipes[chosen] ?? recipes[0]
  return (
    <Fold title="From a shell">
      {recipes.length > 1 && (
        <div class="field">
          <label for={selectId}>Sender</label>
          <select id={selectId} value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {recipes.map(({ title }, n) => (
              <option key={title} value={n}>
                {title}
              </option>
            ))}
          </select>
        </div>
      )}
      {recipe === undefined ? (
        <p class="hint">
          What this webhook asks to be signed has characters that cannot be pasted into a terminal safely.
        </p>
      ) : (
        <>
          {recipe.variables.map(([name, meaning]) => (
            <p key={name} class="hint">
              First <code>export {name}=…</code>, {meaning}.
            </p>
          ))}
          {/* Whoever cannot see it scrolled has to be able to scroll it. */}
          <pre class="code shell-lines" tabIndex={0} aria-label="Lines for a shell">
            {recipe.text}
          </pre>
          <div class="buttons">
            <CopyButton text={recipe.text} title="Copy the lines" />
          </div>
        </>
      )}
    </Fold>
  )
}
