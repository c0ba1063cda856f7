/** Logging in at a server that a test has started. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Value of `Authorization` for a login. */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** The password of `admin`, whom the server has made at its first start. */
export function firstPassword(basePath: string): string {
  return readFileSync(join(basePath, 'initial-admin-password'), 'utf8').trim()
}
