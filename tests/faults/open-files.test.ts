/** The process may open few files: what there is no room for is refused or waits, nothing fails for want of files. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { findDamage, readRows } from '../helpers/audit.ts'
import { acceptedIds, executionOf, flood, holdConnections, tally, withFileLimit } from '../helpers/flood.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { countFiles } from '../helpers/resources.ts'
import { runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let folder: TemporaryFolder
let server: TestServer
afterEach(async () => {
  await server.stop('SIGKILL')
  folder.remove()
})

describe.each([128, 256])('with %s open files', (limit) => {
  it('a flood is refused, what is accepted is done, and then it serves as before', async () => {
    folder = makeFolder()
    server = await startServer({ basePath: folder.path, through: withFileLimit(limit) })
    expect(server.log()).toMatch(new RegExp(`The limit of open files \\(${limit}\\) leaves room for \\d+ connections`))
    const idle = countFiles(server.pid)
    const cmd = 'i=0; while [ $i -lt 20 ]; do echo $i; i=$((i+1)); done'
    const held = await holdConnections(server.urls.stream, 300, 'GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
    // Nobody but those who hold connections is let in; whoever comes is told so.
    const refused = await flood(
      server.urls.api,
      Array.from({ length: 200 }, () => executionOf(cmd)),
    )
    expect(Object.keys(tally(refused)).filter((kind) => kind !== '201' && kind !== '503, again')).toEqual([])
    for (const socket of held) socket.destroy()
    const accepted = await waitFor('room', async () => {
      const answers = await flood(
        server.urls.api,
        Array.from({ length: 200 }, () => executionOf(cmd)),
      )
      expect(Object.keys(tally(answers)).filter((kind) => kind !== '201' && kind !== '503, again')).toEqual([])
      const ids = acceptedIds(answers)
      return ids.length > 0 && ids
    })
    const all = [...acceptedIds(refused), ...accepted]
    for (const id of all) expect(await waitForStatus(server, id)).toMatchObject({ status: 'succeeded' })
    expect([...readRows(folder.path).keys()]).toEqual(expect.arrayContaining(all))

    // Files of content are opened as well.
    const pack = join(folder.path, 'packs', 'later')
    mkdirSync(join(pack, 'actions'), { recursive: true })
    writeFileSync(
      join(pack, 'pack.yaml'),
      'name: later\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n',
    )
    writeFileSync(
      join(pack, 'actions', 'one.yaml'),
      'name: one\nrunner_type: local-shell-cmd\nenabled: true\nparameters: {cmd: {default: echo later}}\n',
    )
    const registered = await server.call('POST', '/v1/packs/register', { packs: ['later'] })
    expect([registered.status, registered.text]).toEqual([200, expect.anything()])
    const later = await runToEnd(server, {}, { action: 'later.one' })
    expect(later).toMatchObject({ status: 'succeeded', result: { stdout: 'later' } })
    // A thread that searches the database may stay for a while.
    expect(await waitFor('all connections to be closed', () => countFiles(server.pid) <= idle + 15)).toBe(true)
    expect(await server.stop()).toEqual({ code: 0, signal: null })
    expect(findDamage(folder.path)).toEqual([])
  })
})
