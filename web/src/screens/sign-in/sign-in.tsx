/** Over whatever is shown: a session that has ended must not cost the page its content. */
import type { JSX } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError, messageOf } from '../../api/client.ts'
import { session } from '../../api/session.ts'
import { RefusalBanner, refusedField, type Refusal } from '../../components/form/refusal.tsx'
import { notify } from '../../components/notices.tsx'
import { useNow } from '../../components/time.tsx'
import { useStore } from '../../store.ts'
import { isLoopbackHost } from './loopback-host.ts'

export function SignIn(): JSX.Element {
  const { phase, user, reason, other } = useStore(session.state)
  const [name, setName] = useState(user?.name ?? '')
  const [password, setPassword] = useState('')
  const [refusal, setRefusal] = useState<Refusal>()
  const [waitUntil, setWaitUntil] = useState(0)
  const [isBusy, setIsBusy] = useState(false)
  const nameField = useRef<HTMLInputElement>(null)
  const passwordField = useRef<HTMLInputElement>(null)
  const isOver = phase === 'signed_out'
  const focusFirst = (): void => (name === '' ? nameField : passwordField).current?.focus()
  const { dialog, onCancel, onClose } = useStayingDialog(isOver, focusFirst)
  const ids = { title: useId(), about: useId(), name: useId(), password: useId(), problem: useId() }
  const isSomebodyElse = user !== undefined && name.trim() !== '' && name !== user.name

  async function signIn(login: { name: string; password: string } | undefined): Promise<void> {
    setRefusal(undefined)
    setIsBusy(true)
    try {
      await session.signIn(login)
      await tellIfNotKept()
    } catch (error) {
      const isRefused = error instanceof ApiError && error.code === 'LOGIN_REFUSED' && login !== undefined
      setRefusal({ text: problemOf(error, login), ...(isRefused && { field: 'password' }) })
      const seconds = error instanceof ApiError ? Number(error.details['retry_after']) : Number.NaN
      if (seconds > 0) setWaitUntil(Date.now() + seconds * 1000)
      setPassword('')
    } finally {
      setIsBusy(false)
    }
  }

  function submit(event: Event): void {
    event.preventDefault()
    if (isBusy || waitUntil > Date.now()) return
    if (name === '' || password === '') {
      setRefusal(
        name === ''
          ? { text: 'Enter the user name.', field: 'username' }
          : { text: 'Enter the password.', field: 'password' },
      )
      return
    }
    void signIn({ name, password })
  }

  return (
    <dialog
      ref={dialog}
      class={user === undefined ? 'sign-in alone' : 'sign-in'}
      aria-labelledby={ids.title}
      aria-describedby={ids.about}
      onCancel={onCancel}
      onClose={onClose}
    >
      <form method="dialog" noValidate onSubmit={submit}>
        <h1 id={ids.title}>Sign in to svc{user !== undefined && ' again'}</h1>
        <div id={ids.about}>
          {user !== undefined && isOver && (
            <p>
              The session of <strong class="user-name">{user.name}</strong> ended: {reason ?? 'it is no longer valid.'}{' '}
              Sign in to continue. The page keeps what you entered.
            </p>
          )}
          {user !== undefined && !isOver && <p>The page keeps its state and continues with the new session.</p>}
          {isOver && other !== undefined && other !== user?.name && (
            <p>
              <strong class="user-name">{other}</strong> signed in with this browser.{' '}
              <button type="button" onClick={() => session.goOnAsOther()}>
                Continue as {other}
              </button>{' '}
              This reloads the page.
            </p>
          )}
        </div>
        <div class="field">
          <label for={ids.name}>User</label>
          <input
            ref={nameField}
            id={ids.name}
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            value={name}
            {...refusedField(refusal, 'username', ids.problem)}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for={ids.password}>Password</label>
          <input
            ref={passwordField}
            id={ids.password}
            name="password"
            type="password"
            autocomplete="current-password"
            value={password}
            {...refusedField(refusal, 'password', ids.problem)}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </div>
        <RefusalBanner refusal={refusal} id={ids.problem} />
        {isSomebodyElse && (
          <p class="hint">Signing in as another user reloads the page and discards what was entered.</p>
        )}
        <div class="buttons">
          <SignInButton isBusy={isBusy} waitUntil={waitUntil} />
          {!isOver && (
            <button type="button" onClick={() => session.stopRenewing()}>
              Not now
            </button>
          )}
        </div>
        <p class="hint">
          Does a proxy in front of svc sign you in?{' '}
          <button type="button" class="link" disabled={isBusy} onClick={() => void signIn(undefined)}>
            Use proxy sign-in
          </button>
        </p>
      </form>
    </dialog>
  )
}

function SignInButton({ isBusy, waitUntil }: { isBusy: boolean; waitUntil: number }): JSX.Element {
  const now = useNow()
  const seconds = Math.ceil((waitUntil - now) / 1000)
  return (
    <button class="primary" type="submit" disabled={isBusy || seconds > 0}>
      {isBusy ? 'Signing in…' : seconds > 0 ? `Sign in (in ${seconds} s)` : 'Sign in'}
    </button>
  )
}

/** @param mustStay whatever the user presses: browsers let nobody keep a dialog open against the second Escape */
function useStayingDialog(mustStay: boolean, focusFirst: () => void) {
  const dialog = useRef<HTMLDialogElement>(null)
  const stays = useRef(mustStay)
  stays.current = mustStay
  // Of the layout: what is to be done with it has to be done while it is in the document.
  useLayoutEffect(() => {
    const { current: element } = dialog
    element?.showModal()
    focusFirst()
    return () => {
      stays.current = false
      // The keyboard goes back to where it was, which it does not when the dialog is merely removed.
      element?.close()
    }
  }, [])
  return {
    dialog,
    onCancel: (event: Event): void => {
      event.preventDefault()
      if (!stays.current) session.stopRenewing()
    },
    onClose: (): void => {
      if (stays.current) dialog.current?.showModal()
    },
  }
}

function problemOf(error: unknown, login: { name: string } | undefined): string {
  if (!(error instanceof ApiError)) return messageOf(error)
  if (error.code === 'LOGIN_REFUSED') {
    return login === undefined
      ? 'No trusted proxy identified you (auth.mode, auth.trusted_proxies). Enter user and password.'
      : 'Wrong user or password.'
  }
  if (error.code === 'AUTHENTICATION_OFF') {
    return 'Authentication is off now (auth.enable). Reload the page.'
  }
  return error.message
}

/** Where browsers may keep no cookie. */
async function tellIfNotKept(): Promise<void> {
  if (location.protocol === 'https:' || isLoopbackHost(location.hostname)) return
  const isKept = await session.isKept().catch(() => true)
  if (isKept) return
  notify(
    'Reloading this page signs you out: it uses plain HTTP. Use the https:// address of the server, or see api.auth_cookie_secure.',
    'failure',
  )
}
