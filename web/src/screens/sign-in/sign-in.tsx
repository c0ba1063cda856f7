/** Over whatever is shown: a session that has ended must not cost the page its content. */
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { session } from '../../api/session.ts'
import { useStore } from '../../store.ts'

export function SignIn(): JSX.Element {
  const { user, reason } = useStore(session.state)
  const [name, setName] = useState(user?.name ?? '')
  const [password, setPassword] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const dialog = useRef<HTMLDialogElement>(null)
  const nameId = useId()
  const passwordId = useId()
  const titleId = useId()

  useEffect(() => {
    dialog.current?.showModal()
  }, [])

  async function signIn(event: Event): Promise<void> {
    event.preventDefault()
    setIsBusy(true)
    setProblem(undefined)
    try {
      await session.signIn(name, password)
    } catch (error) {
      setProblem(messageOf(error))
      setPassword('')
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <dialog ref={dialog} class="sign-in" aria-labelledby={titleId} onCancel={(event) => event.preventDefault()}>
      <form method="dialog" onSubmit={(event) => void signIn(event)}>
        <h1 id={titleId}>Sign in to svc</h1>
        {user !== undefined && (
          <p>
            The session of {user.name} is over{reason === undefined ? '.' : `: ${reason}`} Nothing on the page is lost.
          </p>
        )}
        <div class="field">
          <label for={nameId}>User</label>
          <input
            id={nameId}
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for={passwordId}>Password</label>
          <input
            id={passwordId}
            name="password"
            type="password"
            autocomplete="current-password"
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </div>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <button class="primary" type="submit" disabled={isBusy}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
        <p class="hint">Behind a web server that signs users in, leave both empty.</p>
      </form>
    </dialog>
  )
}
