import type { JSX } from 'preact'
import { useId, useState } from 'preact/hooks'
import { ApiError, change } from '../../api/client.ts'
import type { UserRecord, UserRequest } from '../../api/records.ts'
import { RefusalBanner, refusalBy, refusedField, type Refusal } from '../../components/form/refusal.tsx'
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
  const [refusal, setRefusal] = useState<Refusal>()
  const [isBusy, setIsBusy] = useState(false)
  const id = useId()

  async function save(event: Event): Promise<void> {
    event.preventDefault()
    if (isBusy) return
    const wrong =
      isOwn && present === ''
        ? { text: 'Enter the current password.', field: 'current_password' }
        : password === ''
          ? { text: 'Enter the new password.', field: 'password' }
          : password !== repeated
            ? { text: 'The new passwords differ. Enter the same password twice.', field: 'repeated' }
            : undefined
    setRefusal(wrong)
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
      const by = refusalBy(error, ['current_password', 'password'])
      const isWrong = error instanceof ApiError && error.code === 'CURRENT_PASSWORD_WRONG'
      setRefusal(isWrong ? { ...by, text: 'The current password is wrong.' } : by)
    } finally {
      setIsBusy(false)
    }
  }

  const fields: (readonly [
    name: string,
    label: string,
    value: string,
    set: (text: string) => void,
    autocomplete: string,
  ])[] = [
    ...(isOwn ? [['current_password', 'Current password', present, setPresent, 'current-password'] as const] : []),
    ['password', 'New password', password, setPassword, 'new-password'],
    ['repeated', 'Repeat new password', repeated, setRepeated, 'new-password'],
  ]
  return (
    <form class="form narrow" noValidate onSubmit={(event) => void save(event)}>
      <input type="text" name="username" autocomplete="username" value={name} readOnly hidden />
      {fields.map(([field, label, value, set, autocomplete], i) => (
        <div class="field" key={label}>
          <label for={`${id}-${i}`}>{label}</label>
          <input
            id={`${id}-${i}`}
            type="password"
            autocomplete={autocomplete as 'new-password'} // one of the two above
            value={value}
            {...refusedField(refusal, field, `${id}-refusal`)}
            onInput={(event) => set(event.currentTarget.value)}
          />
        </div>
      ))}
      <RefusalBanner refusal={refusal} id={`${id}-refusal`} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Saving…' : 'Change password'}
        </button>
      </div>
    </form>
  )
}
