/** Contract 02, 2.12, as far as it is about the metadata of actions: the rest is in `05-triggers`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { waitForStatus, type TestApp } from '../helpers/server.ts'
import { create, createAppWithExamples } from './support.ts'

interface Instance {
  payload: Record<string, unknown>
}

let server: TestApp
beforeAll(async () => {
  server = await createAppWithExamples()
})
afterAll(async () => {
  await server.stop()
})

describe('02.12 notifications of an action', () => {
  const sentBy = async (execution: string): Promise<Record<string, unknown>[]> => {
    const path = '/v1/triggerinstances?sort=id&limit=1000&trigger_type=core.svc.generic.notifytrigger'
    const { body } = await server.call<Instance[]>('GET', path)
    return body.map(({ payload }) => payload).filter(({ execution_id: id }) => id === execution)
  }
  const end = async (parameters: object, notify?: object): Promise<string> => {
    const { body, status, text } = await create(server, {
      action: 'examples.telling',
      parameters,
      ...(notify === undefined ? {} : { notify }),
    })
    expect([text, status]).toEqual([text, 201])
    await waitForStatus(server, body.id)
    return body.id
  }
  const told = async (id: string): Promise<unknown[]> =>
    (await sentBy(id)).map(({ route, message }) => [route, message])

  it.concurrent('02.12 they replace the whole of what the request says', async () => {
    const notify = { 'on-success': { routes: ['asked'] }, 'on-complete': { routes: ['asked'] } }
    expect(await told(await end({ cmd: 'echo hi' }, notify))).toEqual([['good', 'hi of echo hi']])
    expect(await told(await end({ cmd: 'echo hi' }))).toEqual([['good', 'hi of echo hi']])
  })

  it.concurrent('02.12 a failure and a time-out take the failure section; what cannot be rendered stays', async () => {
    for (const parameters of [{ cmd: 'false' }, { cmd: 'sleep 60', timeout: 1 }]) {
      expect(await told(await end(parameters))).toEqual([['bad', '{{ nothing.at.all }}']])
    }
  })
})
