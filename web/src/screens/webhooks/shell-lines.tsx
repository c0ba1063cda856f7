import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { CopyButton } from '../../components/copy-button.tsx'
import { Fold } from './fold.tsx'
import type { Recipe } from './authentication.ts'

/** What to type in a terminal, in one of several ways. */
export function ShellLines({ recipes }: { recipes: readonly Recipe[] }): JSX.Element {
  const [chosen, setChosen] = useState(0)
  const selectId = useId()
  const recipe = recipes[chosen] ?? recipes[0]
  return (
    <Fold title="Shell">
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
          No commands: the signed text of this webhook has characters that are unsafe to paste into a terminal.
        </p>
      ) : (
        <>
          {recipe.variables.map(([name, meaning]) => (
            <p key={name} class="hint">
              First <code>export {name}=…</code>, {meaning}.
            </p>
          ))}
          {/* Focusable, so that the keyboard can scroll it. */}
          <pre class="code shell-lines" tabIndex={0} aria-label="Shell commands">
            {recipe.text}
          </pre>
          <div class="buttons">
            <CopyButton text={recipe.text} title="Copy commands" />
          </div>
        </>
      )}
    </Fold>
  )
}
