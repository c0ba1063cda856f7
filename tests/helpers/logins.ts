/** Logging in at a server that a test has started. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { call, type TestApp } from './server.ts'

/** Value of `Authorization` for a login. */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** The password of `admin`, whom the server has made at its first start. */
export function firstPassword(basePath: string): string {
  return readFileSync(join(basePath, 'initial-admin-password'), 'utf8').trim()
}

/** Logs in. @returns the header of further requests */
export async function signIn(
  { urls }: Pick<TestApp, 'urls'>,
  user: string,
  password: string,
): Promise<{ 'X-Auth-Token': string }> {
  const Authorization = basicAuth(user, password)
  const { status, body, text } = await call<{ token: string }>(`${urls.auth}/tokens`, 'POST', {}, { Authorization })
  if (status !== 201) throw new Error(`"${user}" cannot log in (${status}): ${text}`)
  return { 'X-Auth-Token': body.token }
}
