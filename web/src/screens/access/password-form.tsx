import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { ApiError, change, messageOf } from '../../api/client.ts'
import type { UserRecord, UserRequest } from '../../api/records.ts'
import { notify } from '../../components/notices.tsx'

/** A new password, twice; of oneself with the present one. */
export function PasswordForm({
  name,
  isOwn = false,
  onDone,
}: {
  name: string
  isOwn?: boolean
  onDone?: () => void
}): JSX.Element {
  const [present, setPresent] = useState('')
  const [password, setPassword] = useState('')
  const [repeated, setRepeated] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const id = useId()

  async function save(event: Event): Promise<void> {
    event.preventDefault()
    if (isBusy) return
    const wrong =
      isOwn && present === ''
        ? 'Enter the current password.'
        : password === ''
          ? 'Enter the new password.'
          : password !== repeated
            ? 'The new passwords differ. Enter the same password twice.'
            : undefined
    setProblem(wrong)
    if (wrong !== undefined) return
    setIsBusy(true)
    try {
      const body: UserRequest = { password, ...(isOwn ? { current_password: present } : {}) }
      await change<UserRecord>('PUT', `users/${encodeURIComponent(name)}`, body)
      setPresent('')
      setPassword('')
      setRepeated('')
      notify(
        isOwn
          ? 'Password changed. svc ended your other sessions.'
          : `Password of ${name} changed. svc ended the sessions of ${name}.`,
      )
      onDone?.()
    } catch (error) {
      setProblem(
        error instanceof ApiError && error.code === 'CURRENT_PASSWORD_WRONG'
          ? 'The current password is wrong.'
          : messageOf(error),
      )
    } finally {
      setIsBusy(false)
    }
  }

  const fields: (readonly [label: string, value: string, set: (text: string) => void, autocomplete: string])[] = [
    ...(isOwn ? [['Current password', present, setPresent, 'current-password'] as const] : []),
    ['New password', password, setPassword, 'new-password'],
    ['Repeat new password', repeated, setRepeated, 'new-password'],
  ]
  return (
    <form class="form narrow" noValidate onSubmit={(event) => void save(event)}>
      <input type="text" name="username" autocomplete="username" value={name} readOnly hidden />
      {fields.map(([label, value, set, autocomplete], i) => (
        <div class="field" key={label}>
          <label for={`${id}-${i}`}>{label}</label>
          <input
            id={`${id}-${i}`}
            type="password"
            autocomplete={autocomplete as 'new-password'} // one of the two above
            value={value}
            aria-describedby={`${id}-problem`}
            onInput={(event) => set(event.currentTarget.value)}
          />
        </div>
      ))}
      <div id={`${id}-problem`} role="alert">
        {problem !== undefined && <p class="problem">{problem}</p>}
      </div>
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Saving…' : 'Change password'}
        </button>
      </div>
    </form>
  )
}
