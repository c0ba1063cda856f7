/** The service registry (contract 10, 10.6) and the state of single sign-on (contract 01, 1.11) on a running server. */
import { hostname } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { call, type TestApp } from '../helpers/server.ts'
import type { ErrorAnswer } from './support.ts'

let server: TestApp
beforeAll(async () => {
  server = await createTestApp({ settings: { 'timersengine.enable': 'False' } })
})
afterAll(() => server.stop())

test('10.6 every service that runs is a group whose one member is this process; one that is off is none', async () => {
  const { status, body } = await server.call<{ groups: string[] }>('GET', '/v1/service_registry/groups')
  expect(status).toBe(200)
  expect(body.groups).toEqual(expect.arrayContaining(['actionrunner', 'api', 'auth', 'scheduler', 'workflow_engine']))
  expect(body.groups).not.toContain('timer_engine')
  for (const group of body.groups) {
    const { body: answer } = await server.call('GET', `/v1/service_registry/groups/${group}/members`)
    const member_id = `${hostname()}_${process.pid}`
    expect(answer).toMatchObject({
      members: [{ group_id: group, member_id, capabilities: { hostname: hostname(), pid: process.pid } }],
    })
  }
  const api = await server.call('GET', '/v1/service_registry/groups/api/members')
  expect(api.body).toMatchObject({ members: [{ capabilities: { url: server.urls.api } }] })
})

test.each(['nope', 'timer_engine', 'constructor', '%2e%2e'])('10.6 an unknown group: %s', async (group) => {
  const { status } = await server.call<ErrorAnswer>('GET', `/v1/service_registry/groups/${group}/members`)
  expect(status).toBe(404)
})

test('01.11 single sign-on is off, and its other addresses say so without a credential', async () => {
  expect((await call(`${server.urls.auth}/sso`, 'GET')).body).toEqual({ enabled: false })
  for (const [method, path] of [
    ['GET', '/sso/request'],
    ['POST', '/sso/callback'],
  ] as const) {
    const { status, body } = await call<ErrorAnswer>(`${server.urls.auth}${path}`, method)
    expect([path, status, body.code]).toEqual([path, 404, 'SSO_OFF'])
  }
  const form = await fetch(`${server.urls.auth}/sso/callback`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'SAMLResponse=x',
  })
  expect(form.status).toBe(404)
})
