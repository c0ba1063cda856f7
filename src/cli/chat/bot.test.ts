import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Client } from '../connection/client.ts'
import { HttpFailure } from '../failures.ts'
import { runBot } from './bot.ts'
import { openChatState } from './state.ts'

test('a command whose first attempt the server is still at is sent again, and its result is posted', async () => {
  const folder = makeFolder()
  const ending = new AbortController()
  const posts: string[] = []
  let attempts = 0
  const answer = (body: unknown) => ({ status: 200, headers: {}, body })
  const config = {
    prefix: '!',
    route: 'chatops',
    inquiries: undefined,
    users: new Map([['ann', 'ann']]),
    defaultUser: undefined,
    system: 'fake',
  }
  const path = join(folder.path, 'state')
  const running = runBot({
    config,
    adapter: {
      name: 'fake',
      maxChars: 1_000,
      run: (handle) => handle({ id: '1', channel: 'ops', user: 'ann', text: '!go', at: Date.now() }),
      privateChannel: () => Promise.resolve('ann'),
      post({ text }) {
        posts.push(text)
        return Promise.resolve()
      },
    },
    state: openChatState(path),
    client: {
      call: () => Promise.resolve(answer([])),
      // Ends at once: what is owed is tried again whenever the next one is open.
      openStream: () => Promise.resolve(new PassThrough().end() as unknown as IncomingMessage),
    } as unknown as Client, // what the bot uses of it
    callAs(_, method, asked) {
      if (method === 'POST') {
        attempts += 1
        const failure = new HttpFailure(409, 'Conflict', 'in use', 'IDEMPOTENCY_KEY_IN_USE', 'http://svc')
        if (attempts === 1) return Promise.reject(failure)
        const execution = { id: 'e1' }
        return Promise.resolve(answer({ results: [{ execution, actionalias: { ack: { enabled: false } } }] }))
      }
      return Promise.resolve(answer(asked.endsWith('/reply') ? { message: 'done' } : { status: 'succeeded' }))
    },
    userOfNickname: () => Promise.resolve(undefined),
    log: () => undefined,
    signal: ending.signal,
  })
  await waitFor('nothing to be owed', () => posts.length > 0 && readFileSync(path, 'utf8').includes('"owed":[]'))
  ending.abort()
  await running
  folder.remove()
  expect([posts, attempts]).toEqual([['done'], 2])
})
